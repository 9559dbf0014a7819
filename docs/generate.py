"""Writes the parts of the docs that come from the code, between their markers.

    ./dev docs            bring them up to date
    ./dev docs --check    fail if they are not

A part stands between `<!-- NAME -->` and `<!-- /NAME -->`; what is between is replaced.
"""

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, get_args

from cheapgpu.check.cases import catalogue
from cheapgpu.check.forecast import forecast
from cheapgpu.check.plan import Plan
from cheapgpu.cli import COMMANDS
from cheapgpu.core import stream
from cheapgpu.core.recording import read_recording
from cheapgpu.core.rules import AREAS, RULES, Rule
from cheapgpu.core.verify import judge
from cheapgpu.endpoint.dialects import DIALECTS
from cheapgpu.endpoint.edits import EDITS
from cheapgpu.endpoint.failures import FAILURES
from cheapgpu.wire.target import parse_target

ROOT: Final = Path(__file__).parent.parent
#: An output ceiling, so that the case about it is shown.
_CEILING: Final = 4096
ENGINES: Final = ROOT / "tests/data/corpus/engines"


def rules() -> str:
    """Every rule of the registry, under its area."""
    parts = []
    for area, about in AREAS.items():
        parts.append(f"## {area}: {about}\n")
        parts += [_rule(rule) for rule in RULES if rule.area == area]
    return "\n".join(parts)


def _rule(rule: Rule) -> str:
    return (
        f"### {rule.id}\n\n{rule.sentence}\n\n{rule.why}\n\n"
        f"{rule.level} · {rule.citation} · judged by `{rule.judge}`\n"
    )


def diagram() -> str:
    """The order of a stream, drawn from the table."""
    return f"```mermaid\n{stream.diagram()}```\n"


def moves() -> str:
    """The whole table of a stream: a row for each step, a column for each state."""
    lines = [f"| step | {' | '.join(stream.MOVES)} |", f"|---|{'---|' * len(stream.MOVES)}"]
    for step in get_args(stream.Step):
        cells = (_move(moves[step]) for moves in stream.MOVES.values())
        lines.append(f"| `{step}` | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _move(move: stream.Move) -> str:
    return "<br/>".join((move.to, *(f"✗ `{rule}`" for rule in move.broken)))


def engines() -> str:
    """What recorded engines sent, judged."""
    lines = [
        "| engine | answers | complete | failed | refused | MUST rules broken (recordings) |",
        "|---|--:|--:|--:|--:|---|",
    ]
    for folder in sorted(path for path in ENGINES.iterdir() if path.is_dir()):
        judgements = [
            judge(exchange)
            for file in sorted(folder.glob("*.jsonl"))
            for exchange in read_recording(file.read_bytes()).exchanges
        ]
        outcomes = Counter(judgement.outcome for judgement in judgements)
        broken = Counter(rule for judgement in judgements for rule in judgement.broken)
        named = ", ".join(f"`{rule}` ({n})" for rule, n in sorted(broken.items()))
        counts = " | ".join(str(outcomes[o]) for o in ("complete", "failed", "refused"))
        lines.append(f"| {folder.name} | {len(judgements)} | {counts} | {named} |")
    return "\n".join(lines) + "\n"


def cases() -> str:
    """What a check sends, case by case."""
    target = parse_target("https://endpoint.example/v1/chat/completions")
    made = catalogue(ceiling=_CEILING)
    plan = Plan(target=target, model="example-local-model", key="-", cases=made, ceiling=_CEILING)
    lines = ["| case | sends | must get | feeds | tokens |", "|---|---|---|---|--:|"]
    for one in forecast(plan):
        feeds = ", ".join(f"`{rule}`" for rule in _areas(one.rules))
        lines.append(
            f"| {one.case.name} | {one.case.purpose} | {one.calls_for} | {feeds} | {one.tokens} |"
        )
    lines += [
        "",
        f"{len(made)} cases; with `--ceiling {_CEILING}`, which adds `limit-over-ceiling`.",
    ]
    return "\n".join(lines) + "\n"


def _areas(rules: Sequence[str]) -> list[str]:
    """The rules in their order, those of an area as one where there are more than three."""
    counts = Counter(rule.partition("/")[0] for rule in rules)
    shown = (f"{area}/*" if counts[area := rule.partition("/")[0]] > 3 else rule for rule in rules)
    return [*dict.fromkeys(shown)]


def examples() -> str:
    """The examples of the profile's documents."""
    parts = []
    for name, language in (
        ("request.json", "json"),
        ("completion.json", "json"),
        ("stream.sse", ""),
        ("error.json", "json"),
    ):
        text = (ROOT / "examples" / name).read_text().rstrip("\n")
        parts.append(f"`examples/{name}`\n\n```{language}\n{text}\n```\n")
    return "\n".join(parts)


def commands() -> str:
    """The help text of every command."""
    parts = []
    for command in COMMANDS:
        text = _output(command, "--help", width=90, code=0)
        parts.append(f"## cheapgpu {command}\n\n```\n{text}\n```\n")
    return "\n".join(parts)


def failures() -> str:
    """Why an answer of the endpoint fails: code, status, sentence."""
    rows = [f"| `{code}` | {status} | {says} |" for code, (status, says) in FAILURES.items()]
    return "\n".join(["| code | status | |", "|---|--:|---|", *rows]) + "\n"


def edits() -> str:
    """The honest edits, each in its sentence."""
    rows = [f"| `{edit}` | {sentence} |" for edit, sentence in EDITS.items()]
    return "\n".join(["| edit | |", "|---|---|", *rows]) + "\n"


def dialects() -> str:
    """The dialects: what each is sent, and what a supplier should know."""
    rows = []
    for each in DIALECTS.values():
        limits = " and ".join(f"`{limit}`" for limit in each.limits)
        facts = [f"`{theirs}` is `{ours}`" for theirs, ours in each.synonyms.items()]
        if each.collects:
            facts.append("plain answers are collected from streams")
        if each.no_streams:
            facts.append(f"streams are refused: {each.no_streams}")
        rows.append(
            f"| `{each.name}` | {each.title} | {limits} | {'; '.join([*facts, *each.notes])} |"
        )
    return "\n".join(["| dialect | engine | limit | |", "|---|---|---|---|", *rows]) + "\n"


def example() -> str:
    """The report of a recording with one fault."""
    return _verified("tests/data/corpus/quirks/q106.jsonl")


def first_check() -> str:
    """What is reported of a stream that llama.cpp sent."""
    file = ENGINES / "xllamacpp/stream_happy.jsonl"
    return _verified(file.relative_to(ROOT).as_posix())


def _verified(file: str) -> str:
    text = _output("verify", file, width=100, code=1)
    return f"```\n$ ./dev run verify {file}\n{text}\n```\n"


def _output(*arguments: str, width: int, code: int) -> str:
    """What a command prints at this width, in columns, if it ends with this exit code."""
    done = subprocess.run(
        [sys.executable, "-c", "from cheapgpu.cli import main; main()", *arguments],
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={"COLUMNS": str(width), "PATH": "/usr/bin:/bin", "NO_COLOR": "1"},
    )
    if done.returncode != code:
        raise SystemExit(f"cheapgpu {' '.join(arguments)}: exit code {done.returncode}")
    return "\n".join(line.rstrip() for line in done.stdout.strip().splitlines())


#: File and marker → what stands there.
PARTS: Final[dict[tuple[str, str], Callable[[], str]]] = {
    ("docs/rules.md", "rules"): rules,
    ("docs/streams.md", "diagram"): diagram,
    ("docs/streams.md", "moves"): moves,
    ("docs/examples.md", "examples"): examples,
    ("docs/check.md", "cases"): cases,
    ("docs/commands.md", "commands"): commands,
    ("docs/first-check.md", "first-check"): first_check,
    ("docs/endpoint.md", "failures"): failures,
    ("docs/endpoint.md", "edits"): edits,
    ("docs/endpoint.md", "dialects"): dialects,
    ("README.md", "example"): example,
    ("README.md", "engines"): engines,
}


def updated(file: str, marker: str) -> str:
    """The text of a file with one part brought up to date."""
    text = (ROOT / file).read_text()
    begin, end = f"<!-- {marker} -->\n", f"<!-- /{marker} -->"
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    made = PARTS[file, marker]()
    new, count = pattern.subn(lambda _: f"{begin}\n{made}\n{end}", text)
    if count != 1:
        raise SystemExit(f"{file}: the marker {begin.strip()} must stand there once")
    return new


def main() -> int:
    """Write every part, or with --check say which are old."""
    old = []
    for file, marker in PARTS:
        new = updated(file, marker)
        if new != (ROOT / file).read_text():
            old.append(f"{file}: {marker}")
            if "--check" not in sys.argv:
                (ROOT / file).write_text(new)
    print("\n".join(old) or "up to date")
    return int(bool(old) and "--check" in sys.argv)


if __name__ == "__main__":
    sys.exit(main())
