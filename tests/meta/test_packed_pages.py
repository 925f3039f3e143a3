"""An installed service has its pages: the build puts the site into the package."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

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
    subprocess.run([sys.executable, *command], cwd=ROOT, check=True, capture_output=True, timeout=400)
    packed = tmp_path / "lib" / "entrypoints" / "site" / "html"
    for page in ("index", "changelog", "guides/webhooks", "reference/webhooks", "errors/not_found", "search"):
        assert (packed / f"{page}.html").is_file(), page
    assert len([*packed.glob("inside/decisions/*.html")]) == len([*(ROOT / "docs" / "decisions").glob("*.md")])
    entrypoints = ROOT / "entrypoints"
    folders = (entrypoints / "console" / "templates", entrypoints / "console" / "static", entrypoints / "demo" / "data")
    for shown in [one for folder in folders for one in folder.rglob("*") if one.is_file() and one.suffix != ".pyc"]:
        assert (tmp_path / "lib" / shown.relative_to(ROOT)).read_bytes() == shown.read_bytes()
    started = "from entrypoints.site.site import Site; print(Site('http://x', 'http://x').read('/docs/quickstart')[0])"
    told = subprocess.run(
        [sys.executable, "-P", "-c", started], cwd=tmp_path, env={"PYTHONPATH": str(tmp_path / "lib")}, check=True,
        capture_output=True, text=True,
    )  # fmt: skip
    assert told.stdout.strip() == "text/html; charset=utf-8"
