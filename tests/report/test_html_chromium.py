"""The HTML report in a real browser: it opens, it fits, and nothing in it complains or runs."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from cheapgpu.report.html import html_report
from cheapgpu.report.run import Run
from tests.report.runs import everything_wrong, nothing_established, recorded
from tests.report.test_html import engines, hostile_run

CHROMIUM = next(
    (
        path
        for name in ("chromium", "chromium-browser", "google-chrome")
        if (path := shutil.which(name))
    ),
    None,
)
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="Chromium is not installed; on Debian: apt install chromium"
)
PAGES: dict[str, list[Run]] = {
    "stream": [recorded("engines/xllamacpp/stream_happy.jsonl")],
    "engine": [engines()],
    "hostile": [hostile_run()],
    "several": [everything_wrong(), nothing_established(), hostile_run()],
}
#: Written into the page by the test, since the page itself runs nothing: what is wider than it.
ASK = """
<script>
addEventListener("load", () => {
  const root = document.documentElement;
  document.querySelectorAll("details").forEach((one) => { one.open = true; });
  document.body.dataset.over = root.scrollWidth - root.clientWidth;
  document.body.dataset.sections = document.querySelectorAll("section").length;
});
</script>
"""


def browse(file: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Open a file in a browser of its own, without a window and without the network."""
    assert CHROMIUM is not None
    profile = file.parent / "profile"
    command = [
        CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
        "--no-first-run", "--disable-background-networking", "--disable-component-update",
        "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={profile}",
        "--enable-logging=stderr", "--virtual-time-budget=1000", *options, file.as_uri(),
    ]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=True)


@pytest.mark.parametrize("name", PAGES)
def test_a_browser_opens_the_page_without_complaint(name: str, tmp_path: Path) -> None:
    """The page is drawn, and the console stays empty: nothing was blocked, nothing was wrong."""
    file, picture = tmp_path / "page.html", tmp_path / "page.png"
    file.write_text(html_report(PAGES[name]), encoding="utf-8")
    done = browse(file, "--window-size=1400,1200", f"--screenshot={picture}")
    assert "CONSOLE" not in done.stderr
    assert picture.stat().st_size > 20_000


@pytest.mark.parametrize("width", [500, 1400])
@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_wider_than_the_window(name: str, width: int, tmp_path: Path) -> None:
    """With everything unfolded no part of the page makes the whole of it scroll sideways."""
    html = html_report(PAGES[name])
    html = re.sub(r"<meta http-equiv=.*>\n", "", html).replace("</body>", f"{ASK}</body>")
    file = tmp_path / "page.html"
    file.write_text(html, encoding="utf-8")
    shown = browse(file, f"--window-size={width},900", "--dump-dom").stdout
    assert re.findall(r'data-over="(\d+)"', shown) == ["0"]
    assert re.search(r'data-sections="[1-9]', shown)


def test_the_page_prints(tmp_path: Path) -> None:
    """Printing gives a document."""
    file, printed = tmp_path / "page.html", tmp_path / "page.pdf"
    file.write_text(html_report(PAGES["stream"]), encoding="utf-8")
    browse(file, "--no-pdf-header-footer", f"--print-to-pdf={printed}")
    assert printed.read_bytes().startswith(b"%PDF-")
