"""Verdicts to exit codes."""

import pytest

from cheapgpu.cli.exit_codes import exit_code
from cheapgpu.core.findings import Verdict


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        (["conforms"], 0),
        (["does not conform"], 1),
        (["not established"], 3),
        (["conforms", "not established"], 3),
        (["not established", "does not conform", "conforms"], 1),
        ([], 3),
    ],
)
def test_the_worst_verdict_decides(verdicts: list[Verdict], code: int) -> None:
    """A failure outweighs an open verdict, and that a success; nothing judged is nothing proved."""
    assert exit_code(verdicts) == code
