"""An installed service has its pages: the build puts docs/ into the package."""

import subprocess
import sys
from pathlib import Path

from entrypoints.site.folder import PACKED

ROOT = Path(__file__).parents[2]


def test_the_build_packs_every_page(tmp_path: Path) -> None:
    command = [
        "setup.py",
        "-q",
        "egg_info",
        "--egg-base",
        str(tmp_path),
        "build_py",
        "--build-lib",
        str(tmp_path / "lib"),
    ]
    subprocess.run([sys.executable, *command], cwd=ROOT, check=True, capture_output=True, timeout=120)
    packed = tmp_path / "lib" / "entrypoints" / "site" / PACKED
    pages = [ROOT / "CHANGELOG.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "decisions").glob("*.md")]
    assert {path.relative_to(packed) for path in packed.rglob("*.md")} == {path.relative_to(ROOT) for path in pages}
    assert all((packed / path.relative_to(ROOT)).read_bytes() == path.read_bytes() for path in pages)
    entrypoints = ROOT / "entrypoints"
    folders = (entrypoints / "console" / "templates", entrypoints / "console" / "static", entrypoints / "demo" / "data")
    for shown in [one for folder in folders for one in folder.rglob("*") if one.is_file() and one.suffix != ".pyc"]:
        assert (tmp_path / "lib" / shown.relative_to(ROOT)).read_bytes() == shown.read_bytes()
    started = "import entrypoints.site.folder as f; print(f.root()); f.read('docs/quickstart.md')"
    told = subprocess.run(
        [sys.executable, "-P", "-c", started], cwd=tmp_path, env={"PYTHONPATH": str(tmp_path / "lib")}, check=True,
        capture_output=True, text=True,
    )  # fmt: skip
    assert told.stdout.strip() == str(packed)
