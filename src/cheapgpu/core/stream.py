"""Which event may follow which in a stream, as a table; everything that moves the state is here.

Source: profile, "SSE streaming", second paragraph:

    Every JSON chunk has the same ID, creation timestamp, and declared response model. Non-usage
    chunks have one index-0 choice with a delta and a null or terminal finish reason. […] After the
    terminal choice, send one usage-only chunk with choices: [], then data: [DONE]. Do not send
    content after the terminal choice, multiple terminal choices, duplicate usage summaries, or
    events after [DONE].

and "Usage and abnormal termination", second paragraph:

    After headers, an error may appear as an SSE data object containing error; record failure and
    never append a synthetic successful finish or usage summary.

A stream is a walk from `open` to `done`. Each event is one *step*; the table gives, for a state and
a step, the state that follows and the rules that this step breaks. Reading goes on after a wrong
step, so that one fault does not hide the next. What must have happened by the end of the body is
the second table, `PRESENCE`. A comment is not a step.
"""

from typing import Final, Literal, NamedTuple

#: `open` no choice has ended · `early` usage came before the end · `ended` the terminal choice came
#: · `summed` so did the usage chunk · `done` [DONE] came · `failed` an error object came ·
#: `failed-done` and [DONE] after it.
State = Literal["open", "early", "ended", "summed", "done", "failed", "failed-done"]

#: `delta` a choice without a finish reason · `terminal` one with · `…+usage` that states usage too
#: · `usage` usage with choices [] · `empty` neither choice nor usage · `error` an object with an
#: error · `done` [DONE] · `unreadable` data that is no chunk at all.
Step = Literal[
    "delta", "terminal", "delta+usage", "terminal+usage", "usage", "empty", "error", "done",
    "unreadable",
]  # fmt: skip


class Move(NamedTuple):
    """Where a step leads, and the rules (of area `stream/`) that it breaks there."""

    to: State
    broken: tuple[str, ...] = ()


#: state → step → move. Complete: every step is possible in every state, and most are wrong.
MOVES: Final[dict[State, dict[Step, Move]]] = {
    "open": {
        "delta": Move("open"),
        "terminal": Move("ended"),
        "delta+usage": Move("open", ("usage-alone",)),
        "terminal+usage": Move("ended", ("usage-alone",)),
        "usage": Move("early"),
        "empty": Move("open", ("one-choice",)),
        "error": Move("failed"),
        "done": Move("done"),
        "unreadable": Move("open"),
    },
    "early": {
        "delta": Move("early"),
        "terminal": Move("summed", ("usage-after-terminal",)),
        "delta+usage": Move("early", ("usage-alone",)),
        "terminal+usage": Move("summed", ("usage-after-terminal", "usage-alone")),
        "usage": Move("early", ("usage-once",)),
        "empty": Move("early", ("one-choice",)),
        "error": Move("failed"),
        "done": Move("done"),
        "unreadable": Move("early"),
    },
    "ended": {
        "delta": Move("ended", ("quiet-after-terminal",)),
        "terminal": Move("ended", ("terminal-once",)),
        "delta+usage": Move("ended", ("quiet-after-terminal", "usage-alone")),
        "terminal+usage": Move("ended", ("terminal-once", "usage-alone")),
        "usage": Move("summed"),
        "empty": Move("ended", ("one-choice",)),
        "error": Move("failed"),
        "done": Move("done"),
        "unreadable": Move("ended"),
    },
    "summed": {
        "delta": Move("summed", ("quiet-after-terminal",)),
        "terminal": Move("summed", ("terminal-once",)),
        "delta+usage": Move("summed", ("quiet-after-terminal", "usage-alone")),
        "terminal+usage": Move("summed", ("terminal-once", "usage-alone")),
        "usage": Move("summed", ("usage-once",)),
        "empty": Move("summed", ("one-choice",)),
        "error": Move("failed"),
        "done": Move("done"),
        "unreadable": Move("summed"),
    },
    "done": dict.fromkeys(
        (
            "delta", "terminal", "delta+usage", "terminal+usage", "usage", "empty", "error",
            "done", "unreadable",
        ),
        Move("done", ("done-last",)),
    ),
    "failed": {
        **dict.fromkeys(
            ("delta", "terminal", "delta+usage", "terminal+usage", "usage", "empty"),
            Move("failed", ("error-is-final",)),
        ),
        "error": Move("failed"),
        "done": Move("failed-done"),
        "unreadable": Move("failed"),
    },
    "failed-done": dict.fromkeys(
        (
            "delta", "terminal", "delta+usage", "terminal+usage", "usage", "empty", "error",
            "done", "unreadable",
        ),
        Move("failed-done", ("done-last",)),
    ),
}  # fmt: skip

#: rule → the steps of which one must have been taken by the end, unless an error ended the stream.
PRESENCE: Final[dict[str, tuple[Step, ...]]] = {
    "terminal-present": ("terminal", "terminal+usage"),
    "usage-present": ("usage", "delta+usage", "terminal+usage"),
    "done-present": ("done",),
}


def diagram() -> str:
    """The table as a Mermaid state diagram: one edge from a state to another, with all its steps.

    From a state to itself only the steps that break nothing are drawn: Mermaid keeps one such edge
    for each state, and the page has the whole table besides.
    """
    lines = ["stateDiagram-v2", "    [*] --> open"]
    edges: dict[tuple[str, str], list[str]] = {}
    for state, moves in MOVES.items():
        for step, move in moves.items():
            if step != "unreadable" and not (move.broken and move.to == state):
                broken = f" ✗ {', '.join(move.broken)}" if move.broken else ""
                edges.setdefault((_node(state), _node(move.to)), []).append(f"{step}{broken}")
    lines += [f"    {of} --> {to}: {'<br/>'.join(steps)}" for (of, to), steps in edges.items()]
    lines += [f"    {_node(state)} --> [*]" for state in ("done", "failed", "failed-done")]
    return "\n".join(lines) + "\n"


def _node(state: str) -> str:
    return state.replace("-", "_")
