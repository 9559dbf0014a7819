"""Writes GGUF, the file format in which llama.cpp keeps a model.

A file is: a head (magic, version, two counts), the metadata, one entry per tensor, padding, and
then the weights. Source: `docs/gguf.md` of the ggml project, version 3.

Everything is little-endian. A string is its length in bytes as a uint64, then UTF-8 with no NUL.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

#: The first four bytes of every GGUF file.
MAGIC = b"GGUF"

#: The type numbers of the format that this writer needs.
_INT32, _UINT32, _FLOAT32, _BOOL, _STRING, _ARRAY = 5, 4, 6, 7, 8, 9
#: The only tensor type written here: 32-bit floats, which need no quantisation blocks.
_F32_TENSOR = 0
_VERSION = 3
#: Weights begin on this boundary so that a reader can map them; 32 holds where no key says else.
_ALIGNMENT = 32

#: What a metadata value may be; a list holds one type only.
Metadata = Mapping[str, str | bool | int | float | list[str] | list[int] | list[float]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Tensor:
    """One matrix or vector of weights.

    `rows` has one row per output; the length of a row is the number of inputs. A vector is one row
    with `vector` set, since the format writes it with a single dimension.
    """

    name: str
    rows: Sequence[Sequence[float]]
    vector: bool = False

    @property
    def dimensions(self) -> tuple[int, ...]:
        """The sizes as the format orders them: the one that varies fastest comes first."""
        width = len(self.rows[0])
        return (width,) if self.vector else (width, len(self.rows))

    @property
    def weights(self) -> bytes:
        """The rows one after the other, padded to the alignment."""
        return _padded(b"".join(struct.pack(f"<{len(row)}f", *row) for row in self.rows))


def encode_gguf(metadata: Metadata, tensors: Sequence[Tensor]) -> bytes:
    """The bytes of a GGUF file with this metadata and these tensors, in the order given.

    An int is written as uint32 and a float as float32, the widths that llama.cpp reads; ints in a
    list are int32. Raises struct.error for a number that does not fit.
    """
    head = [MAGIC, struct.pack("<IQQ", _VERSION, len(tensors), len(metadata))]
    head += [_string(key) + _value(value) for key, value in metadata.items()]
    weights: list[bytes] = []
    offset = 0  # counted from the first weight, not from the start of the file
    for tensor in tensors:
        sizes = tensor.dimensions
        shape = struct.pack(f"<I{len(sizes)}Q", len(sizes), *sizes)
        head.append(_string(tensor.name) + shape + struct.pack("<IQ", _F32_TENSOR, offset))
        weights.append(tensor.weights)
        offset += len(weights[-1])
    return _padded(b"".join(head)) + b"".join(weights)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % _ALIGNMENT)


def _string(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack("<Q", len(encoded)) + encoded


def _value(value: str | float | list[str] | list[int] | list[float]) -> bytes:
    """A metadata value behind its type number; a list also names its element type and length."""
    match value:
        case str():
            return struct.pack("<I", _STRING) + _string(value)
        case bool():  # before int: a bool is an int to Python
            return struct.pack("<I?", _BOOL, value)
        case int():
            return struct.pack("<II", _UINT32, value)
        case float():
            return struct.pack("<If", _FLOAT32, value)
        case list():
            kind, elements = _elements(value)
            return struct.pack("<IIQ", _ARRAY, kind, len(value)) + elements


def _elements(values: list[str] | list[int] | list[float]) -> tuple[int, bytes]:
    texts = [value for value in values if isinstance(value, str)]
    if texts:
        return _STRING, b"".join(map(_string, texts))
    numbers = [value for value in values if not isinstance(value, str)]
    if all(isinstance(value, int) for value in numbers):
        return _INT32, struct.pack(f"<{len(numbers)}i", *numbers)
    return _FLOAT32, struct.pack(f"<{len(numbers)}f", *numbers)
