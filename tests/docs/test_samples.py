"""The samples in Python and TypeScript run with the clients that the service ships, page by page, against a running server."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.commands import PAGES, ROOT, blocks
from tests.docs.server import Server

RECEIVER = "9000"
"""Programs that listen there run until they are stopped: tests/docs/test_receivers.py."""
SAMPLES = {"python": "from joinery_client", "ts": 'from "joinery-client"'}
"""What a page's blocks of a language begin with, when they are samples."""


def texts(language: str) -> dict[str, str]:
    """The samples of each page as one program."""
    found = {}
    for page in PAGES:
        if page.name == "clients.md":
            continue  # its samples never end, or need values that a reader has: tests/clients runs each by itself
        text = "\n".join(
            block.text for block in blocks(page, language) if not block.reason and RECEIVER not in block.text
        )
        if SAMPLES[language] in text:
            found[page.name] = text
    return found


def ran(argv: list[str], folder: Path, env: dict[str, str]) -> None:
    done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, (argv[-1], done.stdout[-400:], done.stderr[-1500:])
    assert done.stdout.strip(), "a sample shows something"


def test_python(server: Server, clients: Path, tmp_path: Path) -> None:
    env = server.env | {"PYTHONPATH": str(clients / "python")}
    for page, text in texts("python").items():
        file = tmp_path / f"{page}.py"
        file.write_text(text)
        ran([sys.executable, "-P", str(file)], tmp_path, env)


def test_typescript(server: Server, clients: Path) -> None:
    """As JavaScript: samples have no types of their own."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs Node.js")
    for page, text in texts("ts").items():
        file = clients / f"{page}.mjs"
        # the imports of a page's later blocks repeat the first one's
        seen: set[str] = set()
        lines = [
            line for line in text.splitlines() if not ((re.match("import ", line) and line in seen) or seen.add(line))
        ]
        file.write_text("\n".join(lines))
        ran([node, str(file)], clients, server.env)


def test_samples_come_in_threes() -> None:
    """Whoever shows one client shows the other one, and the command line."""
    assert texts("python").keys() == texts("ts").keys() and len(texts("ts")) > 4
    assert all(blocks(ROOT / "docs" / page) for page in texts("python"))
