"""What is installed: the wheel holds every file that the package reads."""

import subprocess
import sys
import zipfile
from pathlib import Path


def test_the_wheel_has_the_schemas_and_all_that_is_read(tmp_path: Path) -> None:
    """Every file of the package that is no Python is in the wheel, byte for byte."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        check=True,
        capture_output=True,
        timeout=100,
    )
    (wheel,) = tmp_path.glob("*.whl")
    package = Path("src/cheapgpu")
    with zipfile.ZipFile(wheel) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    data = [
        path for path in package.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")
    ]
    assert package / "report" / "report.schema.json" in data
    for path in data:
        assert held[str(path.relative_to("src"))] == path.read_bytes(), path
