"""The tiny model's file; that llama.cpp serves it is tested in test_embedded."""

import struct
from pathlib import Path

from cheapgpu.endpoint.gguf import MAGIC
from cheapgpu.endpoint.tiny_model import tiny_model, write_tiny_model


def test_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    """The file of a seed is always the same, so that a failure can be repeated."""
    write_tiny_model(tmp_path / "model.gguf", seed=7)
    assert (tmp_path / "model.gguf").read_bytes() == tiny_model(7)


def test_another_seed_gives_another_model() -> None:
    """Two seeds differ in weights, but not in the size of the file."""
    assert tiny_model(1) != tiny_model(2)
    assert len(tiny_model(1)) == len(tiny_model(2))


def test_file_is_small_gguf_3_with_aligned_weights() -> None:
    """The file is GGUF version 3, below half a MiB, and its parts end on 32 byte boundaries."""
    file = tiny_model()
    assert file.startswith(MAGIC + struct.pack("<I", 3))
    assert len(file) < 2**19
    assert len(file) % 32 == 0
