"""The scripted model: deterministic text and honest counts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cheapgpu.core.request import InputMessage
from cheapgpu.simulate.model import Speech, prompt_tokens, speak, usage


def user(text: str) -> list[InputMessage]:
    """One message."""
    return [InputMessage(role="user", content=text)]


def test_same_messages_get_the_same_answer() -> None:
    """Nothing but the messages and the limit decides on the text and the counts."""
    assert speak(user("Rain?"), 64) == speak(user("Rain?"), 64)
    assert speak(user("Rain?"), 64).text != speak(user("Snow?"), 64).text
    system = InputMessage(role="system", content="Rain?")
    assert speak([system], 64).text != speak(user("Rain?"), 64).text


def test_answer_ends_by_itself_or_at_the_limit() -> None:
    """A word of the prompt is worth fifteen tokens; a limit below that cuts, and says so."""
    assert ends(speak(user("Hi"), 64)) == (15, "stop")
    assert ends(speak(user("Hi"), 15)) == (15, "stop")
    assert ends(speak(user("Hi"), 14)) == (14, "length")
    assert ends(speak(user(""), 64)) == (15, "stop")
    assert ends(speak([], 64)) == (15, "stop")


def ends(speech: Speech) -> tuple[int, str]:
    """How many tokens an answer has, and why no more."""
    assert speech.completion_tokens == len(speech.pieces)
    return speech.completion_tokens, speech.finish_reason


@given(st.text(max_size=200), st.integers(1, 200))
def test_a_limit_shortens_the_text_and_changes_none_of_it(text: str, limit: int) -> None:
    """An answer under a limit is the beginning of the whole answer; a token has one word."""
    whole, cut = speak(user(text), 10_000), speak(user(text), limit)
    assert whole.pieces[: len(cut.pieces)] == cut.pieces
    assert len(cut.text.split()) <= len(cut.pieces) <= limit


@given(st.text(max_size=100), st.text(max_size=100))
def test_a_longer_prompt_never_counts_less(text: str, more: str) -> None:
    """Counting is monotonous, and bounded by the bytes and the template."""
    counted = prompt_tokens(user(text + more))
    assert prompt_tokens(user(text)) <= counted
    assert counted <= len((text + more).encode(errors="surrogatepass")) + 4


def test_words_with_digits_are_repeated_first() -> None:
    """So an answer shows whose it is."""
    assert speak(user("Say cg00000001 and 42."), 64).text.startswith("cg00000001 42 ")


@pytest.mark.parametrize("size", [2, 3, 4])
def test_text_has_characters_of_every_size(size: int) -> None:
    """A long answer holds characters of two, three and four bytes."""
    text = speak(user("Tell a very long story of all the rivers."), 1000).text
    assert any(len(character.encode()) == size for character in text)


def test_usage_adds_up() -> None:
    """The total is made from its parts."""
    assert usage(3, 4) == {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
