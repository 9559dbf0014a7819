"""`--tokenizer`: counts tokens as a model does, from its Hugging Face tokenizer.json."""

import shlex
from collections.abc import Callable
from pathlib import Path

from cheapgpu.core.errors import CheapGPUError


class TokenizerError(CheapGPUError):
    """A tokenizer cannot be used; the message says why."""


def tokenizer_argument(file: Path | None) -> str:
    """Return the option as a command line shows it, with a space before; nothing without a file."""
    return f" --tokenizer {shlex.quote(str(file))}" if file is not None else ""


def counter(file: Path) -> Callable[[str], int]:
    """Return what counts the tokens of a text, without those that a template would add.

    Raises TokenizerError where the package tokenizers is missing or the file is none of its.
    """
    try:
        from tokenizers import Tokenizer
    except ImportError:
        remedy = "it needs the package tokenizers: pip install 'cheapgpu[tokenizer]'"
        raise TokenizerError(f"--tokenizer: {remedy}") from None
    if not file.is_file():
        raise TokenizerError(f"--tokenizer: {file}: no such file; give a tokenizer.json")
    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as error:  # noqa: BLE001 -- the package raises nothing more exact
        problem = f"--tokenizer: {file}: not a tokenizer.json ({type(error).__name__})"
        raise TokenizerError(problem) from None
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)
