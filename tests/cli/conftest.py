"""Commands that tests run in this process write no summary of the job that runs the tests."""

import pytest


@pytest.fixture(autouse=True)
def _no_summary(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that wants a summary says where."""
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
