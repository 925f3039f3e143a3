"""`joinery up --demo` from the outside: first and second start, the printed commands, a clean stop."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.flows.service_processes import wait_until

LAST = 'curl -sS -H "Authorization: Bearer $KEY" "$API/v1/products?source=$SOURCE"'
needs_curl = pytest.mark.skipif(shutil.which("curl") is None or shutil.which("bash") is None, reason="needs curl, bash")


class Demo:
    """One `joinery up --demo`; `output` is its complete start-up output."""

    def __init__(self, data: Path) -> None:
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-P",
                "-m",
                "entrypoints.cli.main",
                "up",
                "--demo",
                "--data-dir",
                str(data),
                "--port",
                "0",
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={name: value for name, value in os.environ.items() if not name.startswith("JOINERY_")},
            start_new_session=True,
        )
        self.output: list[str] = []
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.output.append(line.rstrip("\n"))
            if LAST in line or "could not be completed" in line:
                return
        raise AssertionError("\n".join(self.output))

    def find_line(self, words: str) -> str:
        """Return the line that contains the words."""
        return next(line for line in self.output if words in line)

    @property
    def read_key(self) -> str:
        """Return the secret of the API key."""
        return self.find_line("API key").split()[-1]

    def stop(self) -> int:
        """Press Ctrl-C; return the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=30)
        return self.process.returncode


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "data"


@pytest.fixture(scope="module")
def first_start(data: Path) -> Iterator[Demo]:
    demo = Demo(data)
    yield demo
    demo.stop()


def run_shell(command: str, folder: Path) -> list[dict[str, Any]]:
    """Return the JSON documents that a command prints."""
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True, cwd=folder, timeout=60)
    decoder, text, found = json.JSONDecoder(), done.stdout.strip(), []
    while text:
        document, end = decoder.raw_decode(text)
        found.append(document)
        text = text[end:].strip()
    return found


def test_the_first_start_imports_both_vendors(first_start: Demo) -> None:
    output = "\n".join(first_start.output)
    assert "could not be completed" not in output
    assert "Traceback" not in output
    assert "457 products, 1,407 variants" in first_start.find_line("Lindgren & Falk          457 products, ")
    assert "329 products, 1,009 variants, 1,009 offers" in output
    assert "bad check digit" in output
    assert "offers from" in first_start.find_line("stock of")


@needs_curl
def test_printed_commands_work(first_start: Demo, tmp_path: Path) -> None:
    lines = [line for line in first_start.output if line.startswith("curl") and first_start.read_key in line]
    wait_until(lambda: run_shell(lines[4], tmp_path)[0]["data"], "products are merged", within=30)
    beds, one, offers, run, merges, pairs = (run_shell(line, tmp_path)[0] for line in lines)
    assert [product["data"]["title"].endswith("Panel Bed") for product in beds["data"]] == [True] * 3
    assert one["object"] == "product"
    assert len(one["variants"]) > 1
    assert {offer["availability"] for offer in offers["data"]} == {"in_stock"}
    assert (run["status"], run["stats"]["problems"]) == ("succeeded", len(run["problems"]))
    assert {(merge["kind"], merge["status"], merge["decided_by"]) for merge in merges["data"]} == {
        ("product", "applied", "rules")
    }
    assert {pair["status"] for pair in pairs["data"]} <= {"open"}


@needs_curl
def test_a_feed_of_the_user_is_imported(first_start: Demo, tmp_path: Path) -> None:
    lines = first_start.output[next(at for at, line in enumerate(first_start.output) if line.startswith("API=")) :]
    (listed,) = run_shell("\n".join(lines), tmp_path)
    (product,) = listed["data"]
    assert product["data"]["title"] == "Oak stool"
    assert product["variants"][0]["offers"][0]["price"] == 7900


@pytest.mark.soak
def test_the_second_start_keeps_the_data(first_start: Demo, data: Path) -> None:
    assert first_start.stop() == 0
    kept = (data / "demo.json").read_bytes()
    second = Demo(data)
    try:
        assert second.read_key == first_start.read_key
        assert (data / "demo.json").read_bytes() == kept
        assert not any("Importing the feeds" in line for line in second.output)
        assert second.find_line("Lindgren & Falk          457 products, ")
    finally:
        assert second.stop() == 0
