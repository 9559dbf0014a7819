"""A page as a reader of HTML sees it: elements, anchors, links, text."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

#: Elements without content, and those whose end tag HTML lets one leave out.
VOID = {"meta", "br", "rect", "path"}
OPTIONAL = {"td", "th", "dd", "dt", "tr"}


@dataclass
class Element:
    """A start tag with its attributes."""

    tag: str
    attributes: dict[str, str]


@dataclass
class Page(HTMLParser):
    """All elements of a page in their order, its text, and what is not closed as it should be."""

    elements: list[Element] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    _open: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep an element, and close what its start closes."""
        self.elements.append(Element(tag, {name: value or "" for name, value in attrs}))
        if len(attrs) != len(dict(attrs)):
            self.problems.append(f"{tag} has an attribute twice")
        if tag in {"td", "th"}:
            self._close_optional({"td", "th"})
        elif tag == "dd":
            self._close_optional({"dt"})
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element of SVG that closes itself."""
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        """Close an element, and those in it whose end tag may be left out."""
        while self._open and self._open[-1] != tag and self._open[-1] in OPTIONAL:
            self._open.pop()
        if not self._open or self._open.pop() != tag:
            self.problems.append(f"</{tag}> closes nothing at {self.getpos()}")

    def handle_data(self, data: str) -> None:
        """Keep text, but for that of the style sheet."""
        if self._open and self._open[-1] != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        """The text of the page, in one line."""
        return " ".join("".join(self.words).split())

    def all(self, tag: str) -> Iterator[dict[str, str]]:
        """The attributes of every element of a kind."""
        yield from (one.attributes for one in self.elements if one.tag == tag)

    @property
    def anchors(self) -> list[str]:
        """Every id."""
        return [one.attributes["id"] for one in self.elements if "id" in one.attributes]

    @property
    def links(self) -> list[str]:
        """Every address that an element leads to."""
        return [one.attributes["href"] for one in self.elements if "href" in one.attributes]

    def finish(self) -> list[str]:
        """What is wrong with the markup."""
        self.close()
        return self.problems + [f"<{tag}> is not closed" for tag in self._open]

    def _close_optional(self, tags: set[str]) -> None:
        if self._open and self._open[-1] in tags:
            self._open.pop()


def page_of(html: str) -> Page:
    """Read a page."""
    page = Page()
    page.feed(html)
    return page
