"""Faults of `stream/`: the streamed answer."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Final

from cheapgpu.simulate.answer import DONE, Answer, Event, encode, merged
from cheapgpu.simulate.asked import Asked
from cheapgpu.simulate.gallery.coding import gzipped
from cheapgpu.simulate.gallery.fault import Events, Fault, in_streams
from cheapgpu.simulate.model import usage

#: Longer than any client should be left without a comment, in seconds.
_SILENCE: Final = 20.0

FAILED: Final = Event(
    block={
        "error": {
            "message": "the engine stopped",
            "type": "server_error",
            "param": None,
            "code": None,
        }
    }
)


def _head(name: str, sentence: str, change: Callable[[Answer], Answer]) -> Fault:
    rule = f"stream/{name}"
    return Fault(name=rule, sentence=sentence, breaks=(rule,), answer=in_streams(change))


def _order(name: str, sentence: str, change: Callable[[Events], Iterable[Event]]) -> Fault:
    rule = f"stream/{name}"
    return Fault(
        name=rule,
        sentence=sentence,
        breaks=(rule,),
        events=lambda events, _: tuple(change(events)),
    )


def middle(events: Events) -> int:
    """The place of the event in the middle of the text; 0 if there is no text."""
    texts = [place for place, event in enumerate(events) if event.is_text]
    return texts[len(texts) // 2] if texts else 0


def failed_in_the_middle(events: Events, *after: Event) -> tuple[Event, ...]:
    """A stream that reports an error half-way and ends there, but for what is to come after."""
    return (*events[: middle(events)], FAILED, *after)


def _insert(events: Events, place: int, *more: Event) -> tuple[Event, ...]:
    return (*events[:place], *more, *events[place:])


def _from_the_middle(events: Events, **members: Any) -> tuple[Event, ...]:  # noqa: ANN401 -- JSON is any value
    place = middle(events)
    return (*events[:place], *(event.but(**members) for event in events[place:]))


def _place(events: Events, holds: Callable[[Event], bool]) -> int:
    return next(place for place, event in enumerate(events) if holds(event))


def _bad_comment(events: Events) -> tuple[Event, ...]:
    return _insert(events, middle(events), Event(block=b": \xff\n\n"))


def _named_twice(events: Events) -> tuple[Event, ...]:
    place = middle(events)
    event = events[place]
    data = encode(event.block)[:-1] + b',"object":"chat.completion.chunk"}'
    block = b"data: " + data + b"\n\n"
    return (*events[:place], replace(event, block=block), *events[place + 1 :])


def _last_without_blank_line(events: Events) -> tuple[Event, ...]:
    return (*events[:-1], replace(events[-1], block=DONE[:-1]))


def _text_after_the_end(events: Events) -> tuple[Event, ...]:
    place = _place(events, lambda event: event.is_terminal)
    choice = {"index": 0, "delta": {"content": "."}, "finish_reason": None}
    return _insert(events, place + 1, events[place].but(choices=[choice]))


def _usage_in_the_terminal(events: Events) -> tuple[Event, ...]:
    counted = next(e.block["usage"] for e in events if e.is_usage and isinstance(e.block, dict))
    kept = (event for event in events if not event.is_usage)
    return tuple(event.but(usage=counted) if event.is_terminal else event for event in kept)


def _usage_first(events: Events) -> tuple[Event, ...]:
    place = _place(events, lambda event: event.is_terminal)
    terminal, summary, *others = events[place:]
    return (*events[:place], summary, terminal, *others)


def _recounted(
    events: Events, count: Callable[[dict[str, int]], dict[str, int]]
) -> tuple[Event, ...]:
    return tuple(
        event.but(usage=count(event.block["usage"]))
        if event.is_usage and isinstance(event.block, dict)
        else event
        for event in events
    )


def _wrong_sum(counted: dict[str, int]) -> dict[str, int]:
    return {**counted, "total_tokens": counted["total_tokens"] + 84}


def _beyond_limit(events: Events, asked: Asked) -> Events:
    stopped = (_stopped(event) if event.is_terminal else event for event in events)
    return _recounted(
        tuple(stopped), lambda counted: usage(counted["prompt_tokens"], asked.limit + 1)
    )


def _stopped(terminal: Event) -> Event:
    return terminal.but(choices=[{"index": 0, "delta": {}, "finish_reason": "stop"}])


def _string_for_error(events: Events) -> tuple[Event, ...]:
    error = Event(block=b'data: {"error":"the engine stopped"}\n\n')
    return (*events[: middle(events)], error)


def _success_after_error(events: Events) -> tuple[Event, ...]:
    place = _place(events, lambda event: event.is_terminal)
    return failed_in_the_middle(events, *events[place:])


def _silence(events: Events) -> tuple[Event, ...]:
    place = middle(events)
    slow = replace(events[place], wait=events[place].wait + _SILENCE)
    return (*events[:place], slow, *events[place + 1 :])


def held_back(answer: Answer) -> Answer:
    """Head at once; then nothing until all of the text has been made."""
    return replace(answer, body=merged(answer.body))


STREAMS: Final = (
    _head("status", "Answers a stream with 201.", lambda answer: replace(answer, status=201)),
    _head(
        "content-type",
        "Declares a stream application/json.",
        lambda answer: replace(answer, headers=(("content-type", "application/json"),)),
    ),
    _head("content-encoding", "Compresses a stream without being asked to.", gzipped),
    _head(
        "body-complete",
        "Closes the connection after [DONE] without the last chunk of HTTP.",
        lambda answer: replace(answer, ending="cut"),
    ),
    _order("utf8", "Sends a comment that is not UTF-8.", _bad_comment),
    _order(
        "events-complete",
        "Leaves out the blank line after [DONE].",
        _last_without_blank_line,
    ),
    _order("json", "Names object twice in one chunk.", _named_twice),
    _order(
        "chunk-schema",
        "Leaves usage out of every chunk but the last.",
        lambda events: (event if event.is_usage else event.but(usage=...) for event in events),
    ),
    _order(
        "id-constant",
        "Takes another id in the middle.",
        lambda events: _from_the_middle(events, id="chatcmpl-another"),
    ),
    _order(
        "created-constant",
        "Takes another creation time in the middle.",
        lambda events: _from_the_middle(events, created=1_767_225_599),
    ),
    _order(
        "model-echoed",
        "Names another model than the one that was asked.",
        lambda events: (event.but(model="another-model") for event in events),
    ),
    _order(
        "one-choice",
        "Begins with a chunk that holds neither choice nor usage.",
        lambda events: (events[0].but(choices=[]), *events),
    ),
    _order(
        "terminal-present",
        "Never says why the text ended.",
        lambda events: (event for event in events if not event.is_terminal),
    ),
    _order(
        "terminal-once",
        "Says twice why the text ended.",
        lambda events: (event for event in events for _ in range(2 if event.is_terminal else 1)),
    ),
    _order(
        "quiet-after-terminal",
        "Sends more text after it said why the text ended.",
        _text_after_the_end,
    ),
    _order(
        "usage-present",
        "Never states usage.",
        lambda events: (event for event in events if not event.is_usage),
    ),
    _order(
        "usage-alone",
        "States usage in the chunk with the finish reason.",
        _usage_in_the_terminal,
    ),
    _order(
        "usage-once",
        "Sends the usage chunk twice.",
        lambda events: (event for event in events for _ in range(2 if event.is_usage else 1)),
    ),
    _order(
        "usage-after-terminal",
        "Sends the usage chunk before the chunk with the finish reason.",
        _usage_first,
    ),
    _order(
        "usage-adds-up",
        "States a total that is not the sum.",
        lambda events: _recounted(events, _wrong_sum),
    ),
    Fault(
        name="stream/usage-within-limit",
        sentence="Counts one token more than the limit that was sent.",
        breaks=("stream/usage-within-limit",),
        events=_beyond_limit,
    ),
    _order(
        "done-present",
        "Ends a stream without [DONE].",
        lambda events: (event for event in events if not event.is_done),
    ),
    _order(
        "done-last",
        "Sends [DONE] twice.",
        lambda events: (*events, Event(block=DONE)),
    ),
    _order("error-schema", "Ends every stream by an error that is text.", _string_for_error),
    _order(
        "error-is-final",
        "Reports an error in the middle, and then goes on to finish as if all were well.",
        _success_after_error,
    ),
    _head("incremental", "Sends a stream at its end, all at once, after its head.", held_back),
    _head(
        "closes-after-done",
        "Leaves the body open after [DONE].",
        lambda answer: replace(answer, ending="hang"),
    ),
    _order(
        "heartbeat-while-silent",
        f"Is silent for {_SILENCE:g} s in the middle, without a comment.",
        _silence,
    ),
)
