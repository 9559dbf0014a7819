"""Writes the parts of the docs that come from the code, between their markers.

    ./dev docs            bring them up to date
    ./dev docs --check    fail if they are not

A part stands between `<!-- NAME -->` and `<!-- /NAME -->`; what is between is replaced.
"""

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final

from cheapgpu.cli import COMMANDS
from cheapgpu.core import stream
from cheapgpu.core.recording import read_recording
from cheapgpu.core.rules import AREAS, RULES, Rule
from cheapgpu.core.verify import judge

ROOT: Final = Path(__file__).parent.parent
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
        shown = subprocess.run(
            [sys.executable, "-c", "from cheapgpu.cli import main; main()", command, "--help"],
            check=True,
            capture_output=True,
            text=True,
            env={"COLUMNS": "90", "PATH": "/usr/bin:/bin", "NO_COLOR": "1"},
        ).stdout
        text = "\n".join(line.rstrip() for line in shown.strip().splitlines())
        parts.append(f"## cheapgpu {command}\n\n```\n{text}\n```\n")
    return "\n".join(parts)


#: File and marker → what stands there.
PARTS: Final[dict[tuple[str, str], Callable[[], str]]] = {
    ("docs/rules.md", "rules"): rules,
    ("docs/streams.md", "diagram"): diagram,
    ("docs/examples.md", "examples"): examples,
    ("docs/commands.md", "commands"): commands,
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
