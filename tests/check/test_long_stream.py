"""Whether a long stream was long, and what is asked if it was not."""

import pytest

from cheapgpu.check.cases import STREAM_LONG, Case
from cheapgpu.check.long_stream import MOST_TOKENS, is_long, moment_for, next_question
from cheapgpu.core import examples
from cheapgpu.core.exchange import Closed, Exchange, Head, How, Read, Request
from cheapgpu.core.findings import Judgement
from cheapgpu.core.verify import judge


def answer(
    words: int,
    seconds: float,
    *,
    finish: str = "length",
    status: int = 200,
    how: How = "chunked-end",
    held_back: bool = False,
    case: Case = STREAM_LONG,
    counted: int | None = None,
) -> tuple[Exchange, Judgement]:
    """A stream of so many words that went on for so many seconds, and its judgement."""
    text = [examples.chunk({"content": " drop"}) for _ in range(words)]
    made = case.tokens if counted is None else counted
    usage = {"prompt_tokens": 9, "completion_tokens": made, "total_tokens": made + 9}
    summary = examples.chunk(choices=[], usage=usage)
    events = [*text, examples.chunk(finish=finish), summary, examples.DONE]
    reads, at = [], 0
    for number, event in enumerate(events):
        t = seconds if held_back else seconds * number / (len(events) - 1)
        reads.append(Read(t=0.1 + t, at=at, data=event))
        at += len(event)
    request = Request(
        method="POST",
        url="http://127.0.0.1/",
        headers=(("content-type", "application/json"),),
        body=case.body(examples.MODEL, case.tokens),
    )
    exchange = Exchange(
        case=case.name,
        request=request,
        sent=0.01,
        head=Head(t=0.1, status=status, headers=(("content-type", "text/event-stream"),)),
        reads=tuple(reads),
        closed=Closed(t=reads[-1].t, how=how),
    )
    return exchange, judge(exchange)


def following(
    words: int,
    seconds: float,
    *,
    case: Case = STREAM_LONG,
    tokens_left: int = 4096,
    finish: str = "length",
    status: int = 200,
    how: How = "chunked-end",
    counted: int | None = None,
) -> Case | None:
    """What is asked after such an answer."""
    exchange, judgement = answer(
        words, seconds, case=case, finish=finish, status=status, how=how, counted=counted
    )
    return next_question(case, exchange, judgement, tokens_left=tokens_left)


def test_long_stream_needs_events_and_time() -> None:
    """Text in 64 events and over a second of it are both needed."""
    assert is_long(*answer(64, 1.1))
    assert not is_long(*answer(63, 1.1))
    assert not is_long(*answer(256, 0.9))


def test_text_that_was_held_back_took_its_time_all_the_same() -> None:
    """What came at once after two seconds was two seconds in the making."""
    assert is_long(*answer(80, 2.0, held_back=True))


def test_nothing_is_asked_after_a_long_stream() -> None:
    """A stream that was long enough is the last."""
    assert following(256, 1.5) is None


def test_fast_model_is_asked_for_more() -> None:
    """After a fast answer the next limit follows from its speed, as a case of its own."""
    more = following(256, 0.5)
    assert more is not None
    assert (more.name, more.tokens) == ("stream-long-2", 1024)
    assert more.body("m", 7) != STREAM_LONG.body("m", 7)
    very_fast = following(256, 0.01)
    assert very_fast is not None
    assert very_fast.tokens == MOST_TOKENS


def test_model_that_stopped_early_is_asked_something_else() -> None:
    """After a stop the task changes, and the limit need not grow."""
    more = following(10, 0.5, finish="stop", tokens_left=200)
    assert more is not None
    assert more.tokens == 200


def test_number_of_questions_is_bounded() -> None:
    """After the second further question there is no third."""
    second = following(10, 0.1)
    assert second is not None
    third = following(10, 0.1, case=second, finish="stop")
    assert third is not None
    assert third.name == "stream-long-3"
    assert third.body("m", 7) != second.body("m", 7)
    assert following(10, 0.1, case=third, finish="stop") is None


def test_no_question_without_room_for_a_longer_answer() -> None:
    """Where the tokens that are left allow no larger limit, nothing is asked."""
    assert following(256, 0.5, tokens_left=256) is None
    assert following(10, 0.5, finish="stop", tokens_left=63) is None
    assert following(256, 0.5, tokens_left=300) is not None


def test_no_longer_answer_is_asked_of_a_full_context() -> None:
    """A model whose context was full before the limit has no room for a longer limit."""
    assert following(200, 0.5, counted=200) is None
    assert following(200, 0.5, counted=256) is not None
    assert following(200, 0.5, counted=200, finish="stop") is not None


@pytest.mark.parametrize("how", ["timeout", "deadline", "cancelled"])
def test_nothing_is_asked_after_an_answer_that_was_cut(how: How) -> None:
    """What we stopped would be stopped again."""
    assert following(10, 0.5, how=how) is None


def test_nothing_is_asked_after_a_refusal() -> None:
    """A refusal is an answer; to ask again would be a retry."""
    assert following(10, 0.5, status=429) is None


def test_short_stream_is_sent_so_that_a_second_begins_within_it() -> None:
    """Where the next stream will be shorter than a second, the wait puts a new second in it."""
    exchange, judgement = answer(256, 0.05)
    more = next_question(STREAM_LONG, exchange, judgement, tokens_left=4096)
    assert more is not None
    span = 0.05 * more.tokens / 256
    for now in (1000.0, 1000.3, 1000.99):
        begins = now + moment_for(more, STREAM_LONG, exchange, time_of_day=now) + 0.1
        assert begins < int(begins) + 1 < begins + span
    slow, _ = answer(256, 0.9)
    assert moment_for(more, STREAM_LONG, slow, time_of_day=1000.0) == 0.0
