"""The docs say what the code does: generated parts are current, and every name has its place."""

import hashlib
import re
from pathlib import Path

import pytest

import cheapgpu
from cheapgpu.cli import COMMANDS
from cheapgpu.core.rules import RULES
from cheapgpu.core.stream import MOVES
from docs import generate

PROFILE_SHA256 = "eed687cca8cecd750f229e821b42e7ef73a5005452eb2d8c21f489a11c2aba67"
DOCS = [Path("README.md"), Path("CONTRIBUTING.md"), *sorted(Path("docs").glob("*.md"))]


@pytest.mark.parametrize(("file", "marker"), generate.PARTS)
def test_generated_parts_are_current(file: str, marker: str) -> None:
    """`./dev docs` would change nothing."""
    assert generate.updated(file, marker) == Path(file).read_text()


def test_every_rule_and_command_has_its_place() -> None:
    """The reference names each rule and each command once as a heading."""
    rules, commands = Path("docs/rules.md").read_text(), Path("docs/commands.md").read_text()
    assert re.findall(r"^### (\S+)$", rules, re.MULTILINE) == [rule.id for rule in RULES]
    assert re.findall(r"^## cheapgpu (\S+)$", commands, re.MULTILINE) == list(COMMANDS)


@pytest.mark.parametrize("page", DOCS, ids=str)
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link of a page leads to a file of the repository."""
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if not target.startswith(("http://", "https://")):
            assert (page.parent / target).exists(), target


def test_every_page_is_in_the_index() -> None:
    """A page that the index does not name is not found by anyone."""
    index = Path("docs/index.md").read_text()
    pages = {page.name for page in Path("docs").glob("*.md")} - {"index.md"}
    assert {page for page in pages if f"({page})" not in index} == set()


def test_the_public_names_are_one_list() -> None:
    """What the package promises is what it lists, in order, and each has a docstring."""
    names = [name for name in cheapgpu.__all__ if not name.startswith("__")]
    assert names == sorted(names, key=lambda name: (name.upper() != name, name))
    for name in names:
        assert getattr(getattr(cheapgpu, name), "__doc__", None), name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        cheapgpu.nothing  # noqa: B018 -- asking is the test


def test_the_docs_speak_of_the_project_only() -> None:
    """No page names a machine's path or a registry's host."""
    for page in DOCS:
        assert not re.search(r"/(root|work|home)/|pypi|npmjs|debian\.org", page.read_text()), page


def test_the_page_of_streams_holds_every_move() -> None:
    """Read back from the page, the table says where each step leads and what it breaks."""
    page = Path("docs/streams.md").read_text()
    rows = re.findall(r"^\| (.+) \|$", page.partition("<!-- moves -->")[2], re.MULTILINE)
    head, *body = (row.split(" | ") for row in rows)
    read = {}
    for step, *cells in body:
        for state, cell in zip(head[1:], cells, strict=True):
            to, *broken = cell.split("<br/>")
            read[state, step.strip("`")] = (to, tuple(rule.strip("✗ `") for rule in broken))
    moves = {(state, step): tuple(m) for state, row in MOVES.items() for step, m in row.items()}
    assert read == moves


def test_the_profile_is_the_published_text() -> None:
    """The page of the profile is the published text byte for byte."""
    text = Path("docs/profile.md").read_bytes()
    assert hashlib.sha256(text).hexdigest() == PROFILE_SHA256


def test_every_rule_has_a_remedy() -> None:
    """The page for suppliers says of every rule what to change, and knows no other."""
    named = re.findall(r"`([a-z]+/[a-z0-9_-]+)`", Path("docs/suppliers.md").read_text())
    assert set(named) - {"text/event-stream", "application/json"} == {rule.id for rule in RULES}
