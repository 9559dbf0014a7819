"""The exceptions of this package, and when each is raised.

    CheapGPUError
    ├── RecordingError    a file is not a recording that can be judged
    └── SelectionError    a rule id or glob matches nothing

An endpoint that misbehaves raises nothing: that is a finding.
"""


class CheapGPUError(Exception):
    """Something is wrong with what was given to this package; the message says what to do."""


class RecordingError(CheapGPUError):
    """A recording is damaged, cut short or not a recording; nothing in it may be judged."""

    def __init__(self, problem: str, line: int | None = None) -> None:
        super().__init__(f"line {line}: {problem}" if line else problem)
        #: Number of the line at fault, from 1; None for the file as a whole.
        self.line = line


class SelectionError(CheapGPUError):
    """A rule id or glob matches no rule."""

    def __init__(self, pattern: str, nearest: list[str]) -> None:
        hint = f"; did you mean {' or '.join(nearest)}?" if nearest else ""
        super().__init__(f"no rule matches {pattern!r}{hint}")
        #: The pattern as given.
        self.pattern = pattern
        #: The ids that are most like it.
        self.nearest = nearest
