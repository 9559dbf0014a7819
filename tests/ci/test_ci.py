"""What `ci/` gives to others: the commands in it are commands, and the evidence is uploaded."""

import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from cheapgpu.core.recording import read_recording
from tests.check.conforming import Endpoint, Script
from tests.check.servers import answering, served, unused_port
from tests.cli.commands import cheapgpu, environment

ACTION = Path("ci/github/action.yml")
GITLAB = Path("ci/gitlab.yml")
SCRIPT = Script()
REFUSES_ALL = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"


def script_of_check() -> str:
    """The script of the action's step `Check`, as it stands in the file."""
    step = ACTION.read_text().partition("- name: Check\n")[2]
    script = re.search(r"^      run: \|\n((?:        .*\n|\n)+)", step, re.MULTILINE)
    assert script is not None
    return textwrap.dedent(script[1])


def check(url: str, folder: Path, **variables: str) -> tuple[int, dict[str, str]]:
    """Run the step as GitHub does; its exit code and its outputs."""
    program = folder / "temp/cheapgpu/bin/cheapgpu"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!{sys.executable}\nfrom cheapgpu.cli import main\n\nmain()\n")
    program.chmod(0o755)
    workspace = folder / "workspace"
    workspace.mkdir()
    given = {
        "URL": url,
        "MODEL": SCRIPT.model,
        "KEY": SCRIPT.key,
        "KNOWN": "",
        "OPTIONS": "--only auth/* --timeout 5",
        "RUNNER_TEMP": str(folder / "temp"),
        "GITHUB_OUTPUT": str(folder / "output"),
        "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
    }
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script_of_check()],
        cwd=workspace,
        env=environment(given | variables),
        capture_output=True,
        timeout=100,
        check=False,
    )
    lines = (folder / "output").read_text().splitlines()
    return done.returncode, dict(line.split("=", 1) for line in lines)


@pytest.mark.skipif(shutil.which("bash") is None, reason="GitHub runs the script in bash")
@pytest.mark.parametrize("verdict", ["conforms", "does not conform", "not established"])
def test_the_action_keeps_the_evidence_on_every_outcome(verdict: str, tmp_path: Path) -> None:
    """Recording and reports are there, the outputs name them, and the verdict fails the step."""
    if verdict == "not established":
        code, outputs = check(f"http://127.0.0.1:{unused_port()}/v1", tmp_path)
    else:
        right = verdict == "conforms"
        with served(Endpoint(SCRIPT) if right else answering(REFUSES_ALL)) as url:
            code, outputs = check(f"{url}/v1", tmp_path)
    wanted = {"conforms": 0, "does not conform": 1, "not established": 3}[verdict]
    assert (code, outputs["exit-code"]) == (wanted, str(wanted))
    folder = tmp_path / "workspace" / outputs["folder"]
    names = ("run.jsonl", "report.html", "junit.xml", "report.sarif", "report.json", "badge.json")
    assert {path.name for path in folder.iterdir()} == set(names)
    assert read_recording((folder / "run.jsonl").read_bytes()).exchanges
    assert verdict.upper() in (tmp_path / "summary.md").read_text()


@pytest.mark.skipif(shutil.which("bash") is None, reason="GitHub runs the script in bash")
def test_the_action_takes_known_failures_and_no_key(tmp_path: Path) -> None:
    """A list that cannot be used is wrong use; without a key none is asked for."""
    code, outputs = check("http://127.0.0.1:9/v1", tmp_path, KNOWN="gone.toml", KEY="")
    assert (code, outputs["exit-code"]) == (2, "2")


def test_what_comes_from_outside_is_no_part_of_a_script() -> None:
    """An input reaches a script as a variable: no text of it is run."""
    for step in ACTION.read_text().split("    - name: ")[1:]:
        script = step.partition("run: |\n")[2]
        assert "${{" not in script.partition("\n\n")[0], step


def test_evidence_is_uploaded_whatever_came_of_it() -> None:
    """In both servers."""
    steps = ACTION.read_text().split("    - name: ")
    uploads = [step for step in steps if "uses: " in step]
    assert len(uploads) == 2
    assert all("always()" in step for step in uploads)
    assert "when: always" in GITLAB.read_text()


@pytest.mark.parametrize("file", [ACTION, GITLAB], ids=str)
def test_every_option_in_the_files_is_an_option(file: Path) -> None:
    """Of `cheapgpu check`."""
    offered = cheapgpu("check", "--help").stdout.decode()
    command = re.search(r"cheapgpu\"? check (?:.*\n)+?.*--badge", file.read_text())
    assert command is not None
    used = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", command[0]))
    assert "--sarif" in used
    assert {option for option in used if f" {option} " not in offered} == set()


def test_every_file_that_gitlab_keeps_is_written() -> None:
    """And every file that is written is kept."""
    text = GITLAB.read_text()
    script, _, artifacts = text.partition("artifacts:")
    written = set(re.findall(r"cheapgpu[\w-]*\.(?:jsonl|html|xml|sarif|json)", script))
    kept = set(re.findall(r"cheapgpu[\w-]*\.(?:jsonl|html|xml|sarif|json)", artifacts))
    assert written == kept != set()


def test_the_files_name_nobody_s_machine() -> None:
    """No host but those of the actions that GitHub itself resolves, and no one's home."""
    for file in (ACTION, GITLAB):
        assert not re.search(r"https?://|/(home|root|Users)/", file.read_text())
