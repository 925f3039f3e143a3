"""Tests of the calls in the reference: clients and service accept their form, and return at most an error about the data."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from entrypoints.site.calls import format_client_examples
from tests.docs.server import Server
from tests.support.operation_table import load_operation_table

PYTHON = """
from joinery_client import Joinery, JoineryError
client = Joinery()
tried = 0
def attempt(name, text):
    global tried
    tried += 1
    try:
        exec(text, {"client": client, "print": lambda *_: None})
    except JoineryError as error:
        if error.status in (400, 405, 415) or error.status >= 500:
            raise SystemExit(f"{name}: {error}")
"""
NODE = """
import { Joinery, JoineryError } from "joinery-client";
const client = new Joinery();
const console = { log: () => {} };
let tried = 0;
async function attempt(name, work) {
  tried += 1;
  try { await work(); } catch (error) {
    if (!(error instanceof JoineryError) || [400, 405, 415].includes(error.status) || error.status >= 500) throw new Error(name + ": " + error);
  }
}
"""


def read_calls(language: str) -> dict[str, str]:
    """Return the call of each operation, without the creation of the client."""
    found = {row.id: dict(format_client_examples(row)).get(language, "") for row in load_operation_table()}
    return {name: text.split("client = ")[-1].split("\n", 1)[1] for name, text in found.items() if text}


def run_program(argv: list[str], folder: Path, env: dict[str, str], expected: int) -> None:
    done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout.strip()) == (0, str(expected)), done.stderr[-1500:]


def test_python(server: Server, clients: Path, tmp_path: Path) -> None:
    shown = read_calls("Python")
    file = tmp_path / "calls.py"
    file.write_text(
        PYTHON + "".join(f"attempt({name!r}, {text!r})\n" for name, text in shown.items()) + "print(tried)\n"
    )
    run_program(
        [sys.executable, "-P", str(file)], tmp_path, server.env | {"PYTHONPATH": str(clients / "python")}, len(shown)
    )


def test_typescript(server: Server, clients: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs Node.js")
    shown = read_calls("TypeScript")
    text = "".join(f'await attempt("{name}", async () => {{ {text} }});\n' for name, text in shown.items())
    file = clients / "calls.mjs"
    file.write_text(NODE + text + "process.stdout.write(String(tried));\n")
    run_program([node, str(file)], clients, server.env, len(shown))
