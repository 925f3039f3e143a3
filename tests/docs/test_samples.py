"""Tests of the samples in Python and TypeScript, page by page, with the clients of the service and a running server."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.commands import PAGES, ROOT, read_blocks
from tests.docs.server import Server

RECEIVER = "9000"
"""Port of the receivers, which tests/docs/test_receivers.py runs."""
SAMPLES = {"python": "from joinery_client", "ts": 'from "joinery-client"'}
"""Text that identifies the samples among the blocks of a language."""


def read_samples(language: str) -> dict[str, str]:
    """Return the samples of each page as one program."""
    found = {}
    for page in PAGES:
        if page.name == "clients.md":
            continue  # its samples run without end, or need values of the reader: tests/clients runs each one
        text = "\n".join(
            block.text for block in read_blocks(page, language) if not block.skip_reason and RECEIVER not in block.text
        )
        if SAMPLES[language] in text:
            found[page.name] = text
    return found


def run_program(argv: list[str], folder: Path, env: dict[str, str]) -> None:
    done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, (argv[-1], done.stdout[-400:], done.stderr[-1500:])
    assert done.stdout.strip(), "a sample prints something"


def test_python(server: Server, clients: Path, tmp_path: Path) -> None:
    env = server.env | {"PYTHONPATH": str(clients / "python")}
    for page, text in read_samples("python").items():
        file = tmp_path / f"{page}.py"
        file.write_text(text)
        run_program([sys.executable, "-P", str(file)], tmp_path, env)


def test_typescript(server: Server, clients: Path) -> None:
    """The samples run as JavaScript, because they declare no types."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs Node.js")
    for page, text in read_samples("ts").items():
        file = clients / f"{page}.mjs"
        # later blocks of a page repeat the imports of the first
        seen: set[str] = set()
        lines = [
            line for line in text.splitlines() if not ((re.match("import ", line) and line in seen) or seen.add(line))
        ]
        file.write_text("\n".join(lines))
        run_program([node, str(file)], clients, server.env)


def test_pages_have_samples_for_both_clients_and_commands() -> None:
    assert read_samples("python").keys() == read_samples("ts").keys() and len(read_samples("ts")) > 4
    assert all(read_blocks(ROOT / "docs" / page) for page in read_samples("python"))
