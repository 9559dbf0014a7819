"""The bytes of a GGUF file, against the format's own description."""

import struct

from cheapgpu.endpoint.gguf import Tensor, encode_gguf


def text(value: str) -> bytes:
    """A string as the format writes it: length, then UTF-8."""
    return struct.pack("<Q", len(value.encode())) + value.encode()


def test_head_counts_tensors_and_metadata() -> None:
    """An empty file is its head alone, padded to 32 bytes."""
    assert encode_gguf({}, []) == b"GGUF" + struct.pack("<IQQ", 3, 0, 0) + bytes(8)


def test_each_kind_of_metadata_has_its_type_number() -> None:
    """Metadata is key, type number and value, in the order given; lists name their element type."""
    file = encode_gguf(
        {
            "a.text": "é",
            "a.flag": True,
            "a.count": 7,
            "a.number": 0.5,
            "a.texts": ["x", "yz"],
            "a.counts": [1, -2],
            "a.numbers": [0.5, -1.0],
        },
        [],
    )
    expected = (
        text("a.text")
        + struct.pack("<I", 8)
        + text("é")
        + text("a.flag")
        + struct.pack("<IB", 7, 1)
        + text("a.count")
        + struct.pack("<II", 4, 7)
        + text("a.number")
        + struct.pack("<If", 6, 0.5)
        + text("a.texts")
        + struct.pack("<IIQ", 9, 8, 2)
        + text("x")
        + text("yz")
        + text("a.counts")
        + struct.pack("<IIQii", 9, 5, 2, 1, -2)
        + text("a.numbers")
        + struct.pack("<IIQff", 9, 6, 2, 0.5, -1.0)
    )
    assert file[24:].rstrip(b"\0") == expected.rstrip(b"\0")
    assert len(file) % 32 == 0


def test_tensors_are_placed_on_32_byte_boundaries() -> None:
    """A tensor names its sizes, fastest first, and its offset from the first weight."""
    file = encode_gguf(
        {},
        [
            Tensor(name="m", rows=[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]),
            Tensor(name="v", rows=[[7.0]], vector=True),
        ],
    )
    entries = (
        text("m")
        + struct.pack("<IQQIQ", 2, 3, 2, 0, 0)
        + text("v")
        + struct.pack("<IQIQ", 1, 1, 0, 32)
    )
    head = 24 + len(entries)
    start = head + -head % 32
    assert file[24:head] == entries
    assert struct.unpack_from("<6f", file, start) == (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
    assert struct.unpack_from("<f", file, start + 32) == (7.0,)
    assert len(file) == start + 64
