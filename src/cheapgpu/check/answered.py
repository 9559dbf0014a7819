"""The cases that must be answered: streams and plain answers, and what is hard about them.

Limits are small: what an endpoint does with many tokens it does with a few, but for long streams.
"""

from typing import Final

from cheapgpu.check.case import NONCE, Case, asking, limited_to, said

#: Text whose characters have two to four bytes, among them some that are made of several.
_MANY_SCRIPTS: Final = "雨はどう降る? 🌧️ e\u0301 한글 न्ध ﷺ 👩‍🌾"
#: Text for a prompt that takes a while to be read; about 200 tokens for a usual tokenizer.
_READING: Final = " ".join(
    f"On day {day} the river rose by {day * 7 % 31} hands, and the rain fell until the evening."
    for day in range(1, 11)
)
#: A question whose answer is longer than any small limit.
_ENDLESS: Final = said("Count from one to one hundred in English words.")
_LONG: Final = said(
    "Explain, in many paragraphs and in full detail, how rain forms, how rivers reach the sea, "
    "and why the sea is salt."
)
_COUNTS: Final = (
    "honesty/prompt-tokens-repeatable",
    "honesty/modes-agree",
    "honesty/prompt-tokens-grow",
    "honesty/limit-respected",
    "honesty/length-means-limit",
    "honesty/usage-plausible",
)
_MIXED: Final = ("service/answers-not-mixed",)

STREAM_SHORT: Final = Case(
    name="stream-short",
    purpose="A short answer, streamed.",
    body=asking(said("Describe how rain forms.")),
    tokens=32,
)
STREAM_LONG: Final = Case(
    name="stream-long",
    purpose="A long answer, streamed: text must come while it is made, for over a second.",
    body=asking(_LONG),
    tokens=256,
)
WHOLE_LONG: Final = Case(
    name="whole-long",
    purpose="The question of the last long stream, not streamed, to compare the times.",
    body=asking(_LONG, stream=False),
    tokens=256,
    stream=False,
    feeds=("stream/incremental",),
)
WHOLE_SHORT: Final = Case(
    name="whole-short",
    purpose="A short answer, not streamed.",
    body=asking(said("Describe how snow forms."), stream=False),
    tokens=32,
    stream=False,
)

_USUAL: Final = (
    Case(
        name="stream-stop",
        purpose="An answer that can end by itself.",
        body=asking(said("Answer with one word: is snow cold?")),
        tokens=16,
    ),
    Case(
        name="stream-many-bytes",
        purpose="An answer in emoji, Chinese characters and combining marks, if the model can.",
        body=asking(said(f"Repeat this line and say nothing else: {_MANY_SCRIPTS}")),
        tokens=32,
        feeds=("accepted/unicode",),
    ),
    Case(
        name="stream-one-token",
        purpose="The smallest limit, streamed: hardly any text, and perhaps none.",
        body=asking(said("Hello.")),
        tokens=1,
        feeds=("honesty/modes-agree",),
    ),
    Case(
        name="whole-one-token",
        purpose="The smallest limit, not streamed.",
        body=asking(said("Hello."), stream=False),
        tokens=1,
        stream=False,
        feeds=("honesty/modes-agree",),
    ),
)

#: Pairs in which only one thing differs, so that what the endpoint counts can be compared.
_COUNTED: Final = (
    Case(
        name="stream-cut",
        purpose="A stream that the limit cuts.",
        body=asking(_ENDLESS),
        tokens=8,
        feeds=_COUNTS,
    ),
    Case(
        name="whole-cut",
        purpose="The same question, not streamed.",
        body=asking(_ENDLESS, stream=False),
        tokens=8,
        stream=False,
        feeds=_COUNTS,
    ),
    Case(
        name="whole-again",
        purpose="The same question once more: its prompt must count the same.",
        body=asking(_ENDLESS, stream=False),
        tokens=4,
        stream=False,
        feeds=_COUNTS,
    ),
    Case(
        name="whole-longer",
        purpose="The same question with more text: its prompt must not count less.",
        body=asking(said(f"{_ENDLESS[0]['content']} {_READING[:90]}"), stream=False),
        tokens=4,
        stream=False,
        feeds=_COUNTS,
    ),
)

_WRITTEN: Final = (
    Case(
        name="integer-forms",
        purpose="A limit written 1e1.",
        body=limited_to("1e1", asking(said("Describe how rain forms."))),
        tokens=10,
        adjustable=False,
        feeds=("accepted/integers",),
    ),
    Case(
        name="integer-with-point",
        purpose="A limit written 12.0.",
        body=limited_to("12.0", asking(said("Describe how rain forms."), stream=False)),
        tokens=12,
        adjustable=False,
        stream=False,
        feeds=("accepted/integers",),
    ),
    Case(
        name="integer-1e3",
        purpose="A limit written 1e3, left at the first bytes of its answer.",
        body=limited_to("1e3", asking(said("Describe how rain forms."))),
        tokens=1000,
        adjustable=False,
        feeds=("accepted/integers",),
        leave_after=0,
    ),
    Case(
        name="text-unicode",
        purpose="A question in several scripts, as UTF-8.",
        body=asking(said(_MANY_SCRIPTS), stream=False),
        tokens=4,
        stream=False,
        feeds=("accepted/unicode",),
    ),
    Case(
        name="text-escaped",
        purpose="The same text in escapes, some of them surrogate pairs.",
        body=lambda model, tokens: _escaped(asking(said(_MANY_SCRIPTS))(model, tokens)),
        tokens=4,
        feeds=("accepted/unicode",),
    ),
    *(
        Case(
            name=f"roles-{name}",
            purpose=f"Messages of the roles {', '.join(roles)}.",
            body=asking([{"role": role, "content": "Describe rain."} for role in roles]),
            tokens=4,
            feeds=("accepted/roles",),
        )
        for name, roles in (
            ("usual", ("system", "user", "assistant", "user")),
            ("mixed", ("assistant", "user", "system")),
            ("answered", ("user", "assistant")),
        )
    ),
    Case(
        name="charset",
        purpose="A content type with a charset, which changes nothing.",
        body=asking(said("Hello."), stream=False),
        tokens=1,
        stream=False,
        content_type="application/json; charset=utf-8",
    ),
    Case(
        name="key-in-capitals",
        purpose="The name of the authorization field in capitals, which is the same name.",
        body=asking(said("Hello."), stream=False),
        tokens=1,
        key="capitals",
        stream=False,
    ),
)

_CONDUCT: Final = (
    Case(
        name="leaving",
        purpose="A stream that we leave in the middle.",
        body=asking(_LONG),
        tokens=256,
        leave_after=8,
        feeds=("service/free-after-disconnect",),
    ),
    Case(
        name="after-leaving",
        purpose="The question of stream-cut right after we left: it must not take longer.",
        body=asking(_ENDLESS),
        tokens=8,
        feeds=("service/free-after-disconnect",),
    ),
    Case(
        name="slow-reader",
        purpose="A stream that is read slowly: nothing of it may be lost.",
        body=asking(_ENDLESS),
        tokens=48,
        slow=True,
    ),
    Case(
        name="slow-start",
        purpose="A long prompt: while it is read, a comment must come at least every 15 s.",
        body=asking(said(f"{_READING} On which day did the river rise most?")),
        tokens=4,
        feeds=("stream/heartbeat-while-silent",),
    ),
)

ANSWERED: Final = (
    STREAM_SHORT,
    STREAM_LONG,
    WHOLE_LONG,
    WHOLE_SHORT,
    *_USUAL,
    *_COUNTED,
    *_WRITTEN,
    *_CONDUCT,
)

#: The last case of a run: whatever was sent before it, the endpoint must still be there.
STILL_THERE: Final = Case(
    name="still-there",
    purpose="A short answer after all that had to be refused.",
    body=asking(said("Hello once more."), stream=False),
    tokens=1,
    stream=False,
    feeds=("service/answers-after-fault",),
)


def streams_at_once(count: int) -> tuple[Case, ...]:
    """So many streams that are under way at the same time, each about a word of its own."""
    return tuple(
        Case(
            name=f"concurrent-{number}",
            purpose=f"One of {count} streams at once; each must keep its own word.",
            body=asking(said(f"Repeat this word again and again, and nothing else: {NONCE}")),
            tokens=24,
            feeds=_MIXED,
            beside="streams",
        )
        for number in range(1, count + 1)
    )


def _escaped(body: bytes) -> bytes:
    """A JSON text with every character outside ASCII as an escape."""
    units = (
        f"\\u{unit:04x}" if unit > 126 else chr(unit)
        for unit in memoryview(body.decode().encode("utf-16-le")).cast("H")
    )
    return "".join(units).encode()
