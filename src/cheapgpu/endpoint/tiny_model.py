"""A tiny model that llama.cpp's own server serves: no download, no licence, a quarter of a MB.

It writes grammatical nonsense, one word to a token, and does not stop by itself: an answer ends at
the token limit (finish reason `length`). If the prompt holds the word in `STOP_WORD`, the answer
ends at its first full stop (finish reason `stop`). So both endings can be had from a real engine.

How: the grammar stands in the weights. A token's embedding says which part of speech it is, and the
output layer prefers the words of the part that may follow; random weights decide between those
words, so that the seed gives the model its taste. One attention head looks for the stop word.
"""

import random
from dataclasses import dataclass
from pathlib import Path

from cheapgpu.endpoint.gguf import Metadata, Tensor, encode_gguf

#: The longest conversation, prompt and answer together, that the model says it can hold.
CONTEXT_TOKENS = 32_768
#: In a prompt, this word makes the answer end at its first full stop.
STOP_WORD = "briefly"

#: U+2581 stands for a space inside a token of a SentencePiece vocabulary.
_SPACE = "\u2581"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Part:
    """A part of speech: its words, and the parts that it may stand after."""

    name: str
    after: tuple[str, ...]
    words: tuple[str, ...]


def _spaced(words: str) -> tuple[str, ...]:
    return tuple(_SPACE + word for word in words.split())


#: Some words are not ASCII, so that streams carry UTF-8 of more than one byte.
_GRAMMAR = (
    _Part(name="prompt", after=(), words=()),
    _Part(name="opening", after=("prompt",), words=("The", "One", "Every", "Each")),
    _Part(name="article", after=("stop",), words=_spaced("The One Every Each")),
    _Part(
        name="quality",
        after=("opening", "article"),
        words=_spaced("patient small naïve honest quiet careful distant plain curious steady"),
    ),
    _Part(
        name="actor",
        after=("opening", "article", "quality"),
        words=_spaced("server buyer model gateway supplier reader ledger client"),
    ),
    _Part(
        name="action",
        after=("actor",),
        words=_spaced("counts reads sends checks keeps signs measures repeats"),
    ),
    _Part(name="which", after=("action",), words=_spaced("the one every each")),
    _Part(
        name="thing",
        after=("which",),
        words=_spaced("token event answer recording café number stream promise"),
    ),
    _Part(name="stop", after=("thing",), words=(".",)),
)
_PARTS = [part.name for part in _GRAMMAR]

#: Token types of a SentencePiece vocabulary. A user-defined token is found in a text as it stands;
#: a normal one would have to be built from shorter tokens, which this vocabulary does not have.
_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _BYTE = 1, 2, 3, 4, 6
#: The first tokens, by id. Every byte has a token, so that every prompt can be read.
_RESERVED = (
    ("<unk>", _UNKNOWN),
    ("<s>", _CONTROL),
    ("</s>", _CONTROL),
    *((f"<0x{byte:02X}>", _BYTE) for byte in range(256)),
    (_SPACE, _NORMAL),
    (STOP_WORD, _USER_DEFINED),
)
_UNKNOWN_ID, _BEGIN_ID, _END_ID = 0, 1, 2

_TEMPLATE = (
    "{% for message in messages %}"
    "{{ message.role + ': ' + message.content + '\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}"
)

#: The width of the residual stream, and what its first numbers mean. The rest is taste.
_WIDTH = 64
_CONSTANT = 0  # the same in every token: stands in for a bias, which this architecture has not
_STOP_WORD = 1  # this token is the stop word
_ENDING = 2  # the stop word came before; written by the attention head
_PART = 3  # one number per part of speech
_TASTE = _PART + len(_PARTS)
#: llama.cpp requires a feed-forward layer; with zero weights it adds nothing.
_FEED_FORWARD = 32

#: How strongly a token says what it is, and how strongly the output layer heeds it. Normalisation
#: divides both by about 1.2, so a word of a part that may follow leads by about 14 (logits), far
#: beyond what sampling lets through, while taste differs by about 1.
_SIGNAL = 4.0
_FOLLOWS = 4.0
_NEVER = -10.0
_TASTE_SPREAD = 0.25
#: The end of the answer leads only where both of its causes hold (-10 + 9 + 6 > 4): the stop word
#: came before, and the last token is a full stop.
_END_IF_ENDING = 9.0
_END_AFTER_STOP = 6.0


def write_tiny_model(path: Path, seed: int = 0) -> None:
    """Write the model of this seed to a GGUF file; the same seed gives the same bytes.

    Raises OSError if the file cannot be written.
    """
    path.write_bytes(tiny_model(seed))


def tiny_model(seed: int = 0) -> bytes:
    """The bytes of the GGUF file of this seed."""
    taste = random.Random(seed)  # noqa: S311 - weights are no secret; they must be repeatable
    tokens: list[tuple[str, int, str]] = [(text, kind, "prompt") for text, kind in _RESERVED]
    tokens += [(word, _NORMAL, part.name) for part in _GRAMMAR for word in part.words]
    return encode_gguf(_metadata(tokens), _tensors(tokens, taste))


def _metadata(tokens: list[tuple[str, int, str]]) -> Metadata:
    return {
        "general.architecture": "llama",
        "general.name": "CheapGPU tiny model",
        "llama.context_length": CONTEXT_TOKENS,
        "llama.embedding_length": _WIDTH,
        "llama.block_count": 1,
        "llama.feed_forward_length": _FEED_FORWARD,
        "llama.attention.head_count": 1,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.rope.dimension_count": _WIDTH,
        # Positions turn each pair of numbers by base^(-pair/pairs) a token. With this base the last
        # pair, which the attention head uses, hardly turns over the whole context.
        "llama.rope.freq_base": 1e9,
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": [text for text, _, _ in tokens],
        "tokenizer.ggml.scores": [float(-rank) for rank in range(len(tokens))],
        "tokenizer.ggml.token_type": [kind for _, kind, _ in tokens],
        "tokenizer.ggml.unknown_token_id": _UNKNOWN_ID,
        "tokenizer.ggml.bos_token_id": _BEGIN_ID,
        "tokenizer.ggml.eos_token_id": _END_ID,
        "tokenizer.ggml.add_bos_token": True,
        "tokenizer.ggml.add_space_prefix": False,
        "tokenizer.chat_template": _TEMPLATE,
    }


def _tensors(tokens: list[tuple[str, int, str]], taste: random.Random) -> list[Tensor]:
    embeddings = [_embedding(text, part, taste) for text, _, part in tokens]
    outputs = [_output(text, part, taste) for text, _, part in tokens]
    # The query is large everywhere and the key only at the stop word, so the head looks there alone
    # if there is one; its value says whether there was. They meet in the last pair (see rope).
    query = _matrix(_WIDTH, _WIDTH, {(_WIDTH - 2, _CONSTANT): 8.0})
    key = _matrix(_WIDTH, _WIDTH, {(_WIDTH - 2, _STOP_WORD): 8.0})
    value = _matrix(_WIDTH, _WIDTH, {(0, _STOP_WORD): 1.0})
    attended = _matrix(_WIDTH, _WIDTH, {(_ENDING, 0): 1.5})
    ones = [[1.0] * _WIDTH]
    return [
        Tensor(name="token_embd.weight", rows=embeddings),
        Tensor(name="blk.0.attn_norm.weight", rows=ones, vector=True),
        Tensor(name="blk.0.attn_q.weight", rows=query),
        Tensor(name="blk.0.attn_k.weight", rows=key),
        Tensor(name="blk.0.attn_v.weight", rows=value),
        Tensor(name="blk.0.attn_output.weight", rows=attended),
        Tensor(name="blk.0.ffn_norm.weight", rows=ones, vector=True),
        Tensor(name="blk.0.ffn_gate.weight", rows=_matrix(_FEED_FORWARD, _WIDTH, {})),
        Tensor(name="blk.0.ffn_up.weight", rows=_matrix(_FEED_FORWARD, _WIDTH, {})),
        Tensor(name="blk.0.ffn_down.weight", rows=_matrix(_WIDTH, _FEED_FORWARD, {})),
        Tensor(name="output_norm.weight", rows=ones, vector=True),
        Tensor(name="output.weight", rows=outputs),
    ]


def _embedding(text: str, part: str, taste: random.Random) -> list[float]:
    """What a token says of itself: its part of speech, and a random sign per number of taste."""
    row = [0.0] * _TASTE + [taste.choice((-1.0, 1.0)) for _ in range(_TASTE, _WIDTH)]
    row[_CONSTANT] = _SIGNAL
    row[_PART + _PARTS.index(part)] = _SIGNAL
    if text == STOP_WORD:
        row[_STOP_WORD] = _SIGNAL
    return row


def _output(text: str, part: str, taste: random.Random) -> list[float]:
    """What makes a token likely: for a word, that its part may follow; for the end, both causes."""
    row = [0.0] * _WIDTH
    after = _GRAMMAR[_PARTS.index(part)].after
    if text == _RESERVED[_END_ID][0]:
        row[_CONSTANT] = _NEVER
        row[_ENDING] = _END_IF_ENDING
        row[_PART + _PARTS.index("stop")] = _END_AFTER_STOP
    elif not after:
        row[_CONSTANT] = _NEVER
    else:
        row[_TASTE:] = [taste.uniform(-_TASTE_SPREAD, _TASTE_SPREAD) for _ in range(_TASTE, _WIDTH)]
        for name in after:
            row[_PART + _PARTS.index(name)] = _FOLLOWS
    return row


def _matrix(height: int, width: int, weights: dict[tuple[int, int], float]) -> list[list[float]]:
    """Zero but for the weights given by (row, column)."""
    rows = [[0.0] * width for _ in range(height)]
    for (row, column), weight in weights.items():
        rows[row][column] = weight
    return rows
