"""Tests of the receivers in docs/webhooks.md, which verify webhooks and print the output that the page shows."""

import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from queue import Empty, Queue

import pytest

from tests.docs.commands import ROOT, read_blocks
from tests.docs.server import Server
from tests.flows.api_client import ApiClient
from tests.flows.service_processes import wait_until

PAGE = ROOT / "docs" / "webhooks.md"
EXPECTED_LINES = (r"webhook\.test whe_\w{22} 1\b", r"offer\.changed ofr_\w{22} 8\b")


def read_receivers(language: str) -> list[str]:
    return [block.text for block in read_blocks(PAGE, language) if "9000" in block.text]


def check_output(server: Server, argv: list[str], folder: Path, env: dict[str, str]) -> None:
    """Start the receiver, send a test event and a sample event to it, and compare its output."""
    api = ApiClient(server.stage.port, server.env["JOINERY_TEST_KEY"])
    url = f"http://127.0.0.1:{server.unused_port}/hooks"
    endpoint = api.post("/v1/webhook-endpoints", {"url": url, "event_types": ["offer.changed"]})
    process = subprocess.Popen(
        argv, cwd=folder, env=env | {"WEBHOOK_SECRET": endpoint["secret"]}, stdout=subprocess.PIPE, text=True
    )
    output: Queue[str] = Queue()
    assert process.stdout is not None
    threading.Thread(target=lambda: [output.put(line) for line in process.stdout or ()], daemon=True).start()
    try:
        wait_until(lambda: rejects_unsigned_requests(server.unused_port), "the receiver listens")
        api.post(f"/v1/webhook-endpoints/{endpoint['id']}/test")
        api.post("/v1/test/events", {"type": "offer.changed"})
        printed = ""
        until = time.monotonic() + 20
        while time.monotonic() < until and not all(re.search(line, printed) for line in EXPECTED_LINES):
            try:
                printed += output.get(timeout=0.2)
            except Empty:
                continue
        assert all(re.search(line, printed) for line in EXPECTED_LINES), printed
    finally:
        process.kill()
        process.wait()
        assert api.call("DELETE", f"/v1/webhook-endpoints/{endpoint['id']}").status == 204


def rejects_unsigned_requests(port: int) -> bool:
    """Return whether the receiver on the port runs and rejects a request without a signature."""
    try:
        return ApiClient(port, None).send("POST", "/hooks", b"{}").status == 400
    except OSError:
        return False


def test_python(server: Server, clients: Path, tmp_path: Path) -> None:
    programs = read_receivers("python")
    assert len(programs) == 2
    for number, text in enumerate(programs):
        file = tmp_path / f"receiver{number}.py"
        file.write_text(text.replace("9000", str(server.unused_port)))
        env = server.env | {"PYTHONPATH": str(clients / "python")}
        check_output(server, [sys.executable, "-P", "-u", str(file)], tmp_path, env)


def test_typescript(server: Server, clients: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs Node.js")
    [text] = read_receivers("ts")
    file = clients / "receiver.mjs"
    file.write_text(text.replace("9000", str(server.unused_port)))
    check_output(server, [node, str(file)], clients, server.env)
