"""The table: complete, and wrong exactly where the profile says so."""

import re
from typing import get_args

import pytest

from cheapgpu.core import rules
from cheapgpu.core.stream import MOVES, PRESENCE, State, Step, diagram


def test_the_table_is_complete() -> None:
    """Every state has a move for every step, and every move leads to a state."""
    assert set(MOVES) == set(get_args(State))
    for moves in MOVES.values():
        assert set(moves) == set(get_args(Step))
        assert {move.to for move in moves.values()} <= set(MOVES)


def test_every_rule_of_the_table_is_in_the_registry() -> None:
    """Rules of order and presence have their sentence and citation."""
    named = {rule for moves in MOVES.values() for move in moves.values() for rule in move.broken}
    assert {f"stream/{rule}" for rule in named | set(PRESENCE)} <= set(rules.BY_ID)


@pytest.mark.parametrize(
    ("steps", "state", "broken"),
    [
        ("delta terminal usage done", "done", []),
        ("delta delta done", "done", []),
        ("terminal terminal usage done", "done", ["terminal-once"]),
        ("terminal delta usage done", "done", ["quiet-after-terminal"]),
        ("usage terminal done", "done", ["usage-after-terminal"]),
        ("terminal usage usage done", "done", ["usage-once"]),
        ("delta+usage terminal+usage usage done", "done", ["usage-alone", "usage-alone"]),
        ("empty delta terminal usage done", "done", ["one-choice"]),
        ("delta error done", "failed-done", []),
        ("error delta", "failed", ["error-is-final"]),
        ("terminal usage done comment", "done", []),
        ("done delta", "done", ["done-last"]),
        ("error done delta", "failed-done", ["done-last"]),
    ],
)
def test_a_walk_breaks_what_it_must(steps: str, state: State, broken: list[str]) -> None:
    """Walks through the table end where they should, and break the rules that they break."""
    at: State = "open"
    found: list[str] = []
    for step in steps.replace(" comment", "").split():
        move = MOVES[at][step]  # type: ignore[index]
        found += move.broken
        at = move.to
    assert (at, found) == (state, broken)


def test_only_one_way_is_clean() -> None:
    """From open, a walk that breaks nothing reaches done only in the order of the profile."""
    clean = {
        (state, step): move.to
        for state, moves in MOVES.items()
        for step, move in moves.items()
        if not move.broken and step != "unreadable"
    }
    assert clean["open", "terminal"] == "ended"
    assert clean["ended", "usage"] == "summed"
    assert clean["summed", "done"] == "done"
    assert not [step for state, step in clean if state in ("done", "failed-done")]
    assert {step for state, step in clean if state == "summed"} == {"done", "error"}


def test_the_diagram_draws_each_edge_once() -> None:
    """Mermaid keeps one edge of a state to itself, so no two states may be joined twice."""
    drawn = diagram()
    assert drawn.startswith("stateDiagram-v2\n")
    pairs = re.findall(r"^    (\S+) --> ([^\s:]+)", drawn, re.MULTILINE)
    assert sorted(pairs) == sorted(set(pairs))
    assert {state.replace("-", "_") for state in MOVES} <= {of for of, _ in pairs}


def test_the_diagram_shows_every_way_on_and_every_clean_step() -> None:
    """A step is drawn, with the rules that it breaks, if it leads on or breaks nothing."""
    shown = {
        (of, to): steps.split("<br/>")
        for of, to, steps in re.findall(r"^    (\S+) --> (\S+): (.+)$", diagram(), re.MULTILINE)
    }
    for state, moves in MOVES.items():
        for step, move in moves.items():
            edge = shown.get((state.replace("-", "_"), move.to.replace("-", "_")), [])
            label = f"{step} ✗ {', '.join(move.broken)}" if move.broken else step
            drawn = step != "unreadable" and (state != move.to or not move.broken)
            assert (label in edge) == drawn
