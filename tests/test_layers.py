"""What may import what: the design's layers, read from the sources."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path("src/cheapgpu")
SOURCES = sorted(PACKAGE.rglob("*.py"))

#: package → the packages of ours that it may import (itself aside).
BELOW: dict[str, set[str]] = {
    "core": set(),
    "wire": {"core"},
    "ledger": {"core"},
    "check": {"core", "wire"},
    "endpoint": {"core", "wire"},
    "gateway": {"core", "wire", "ledger"},
    "simulate": {"core", "wire"},
    "report": {"core"},
    "console": {"core", "ledger", "report"},
    "cli": {
        "core", "wire", "ledger", "check", "endpoint", "gateway", "simulate", "report", "console",
    },
}  # fmt: skip
#: The only packages of others that the core may import beside the standard library.
CORE_MAY = {"msgspec", "jsonschema_rs"}
#: Standard modules that reach beyond bytes and values: sockets, clocks, files, chance, logs.
CORE_MAY_NOT = {
    "asyncio", "socket", "ssl", "selectors", "time", "random", "secrets", "logging", "os",
    "pathlib", "subprocess", "threading", "multiprocessing", "io", "tempfile", "http", "urllib",
    "sys",
}  # fmt: skip


def imports(source: Path) -> set[str]:
    """The dotted names of every module that a file imports, wherever in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{source}: imports are absolute"
            module = node.module or ""
            names |= {f"{module}.{alias.name}" for alias in node.names} | {module}
    return names


def package_of(source: Path) -> str:
    """The package of ours that a file belongs to; "" for the top level."""
    parts = source.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else ""


@pytest.mark.parametrize("source", SOURCES, ids=str)
def test_imports_point_downwards(source: Path) -> None:
    """A package imports only what stands below it, and never a program beside it."""
    package = package_of(source)
    ours = {name.split(".")[1] for name in imports(source) if name.startswith("cheapgpu.")}
    packages = {name for name in ours if (PACKAGE / name).is_dir()} - {package}
    assert packages <= (BELOW[package] if package else {"core", "cli"})


@pytest.mark.parametrize("source", [s for s in SOURCES if package_of(s) == "core"], ids=str)
def test_the_core_reaches_no_socket_clock_or_file(source: Path) -> None:
    """The core imports the standard library's pure parts, msgspec and jsonschema-rs; no open()."""
    tops = {name.split(".")[0] for name in imports(source)} - {"cheapgpu"}
    assert not tops & CORE_MAY_NOT
    assert tops - CORE_MAY <= set(__import__("sys").stdlib_module_names)
    calls = {
        node.func.id
        for node in ast.walk(ast.parse(source.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert not calls & {"open", "print", "input", "exec", "eval"}


def test_every_package_has_its_place() -> None:
    """No package exists that the layers do not know."""
    packages = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    assert packages <= set(BELOW)


def test_names_of_files_are_nouns_of_the_design() -> None:
    """No file is a drawer for leftovers."""
    drawers = {"utils", "util", "helpers", "common", "manager", "base", "misc", "tools"}
    assert not {source.stem for source in SOURCES} & drawers
