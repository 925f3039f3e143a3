"""The receivers of docs/webhooks.md verify what the service sends, and print what the page shows."""

import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from queue import Empty, Queue

import pytest

from tests.docs.commands import ROOT, blocks
from tests.docs.server import Server
from tests.flows.api import Api
from tests.flows.stage import eventually

PAGE = ROOT / "docs" / "webhooks.md"
SHOWN = (r"webhook\.test whe_\w{22} 1\b", r"offer\.changed ofr_\w{22} 8\b")


def receivers(language: str) -> list[str]:
    return [block.text for block in blocks(PAGE, language) if "9000" in block.text]


def prints_what_is_sent(server: Server, argv: list[str], folder: Path, env: dict[str, str]) -> None:
    """Start the receiver, have a test and a sample sent to it, and read what it prints."""
    api = Api(server.stage.port, server.env["JOINERY_TEST_KEY"])
    url = f"http://127.0.0.1:{server.spare_port}/hooks"
    endpoint = api.post("/v1/webhook-endpoints", {"url": url, "event_types": ["offer.changed"]})
    process = subprocess.Popen(
        argv, cwd=folder, env=env | {"WEBHOOK_SECRET": endpoint["secret"]}, stdout=subprocess.PIPE, text=True
    )
    output: Queue[str] = Queue()
    assert process.stdout is not None
    threading.Thread(target=lambda: [output.put(line) for line in process.stdout or ()], daemon=True).start()
    try:
        eventually(lambda: answers(server.spare_port), "the receiver listens")
        api.post(f"/v1/webhook-endpoints/{endpoint['id']}/test")
        api.post("/v1/test/events", {"type": "offer.changed"})
        heard = ""
        until = time.monotonic() + 20
        while time.monotonic() < until and not all(re.search(line, heard) for line in SHOWN):
            try:
                heard += output.get(timeout=0.2)
            except Empty:
                continue
        assert all(re.search(line, heard) for line in SHOWN), heard
    finally:
        process.kill()
        process.wait()
        assert api.call("DELETE", f"/v1/webhook-endpoints/{endpoint['id']}").status == 204


def answers(port: int) -> bool:
    """Whether it refuses what nobody signed."""
    try:
        return Api(port, None).send("POST", "/hooks", b"{}").status == 400
    except OSError:
        return False


def test_python(server: Server, clients: Path, tmp_path: Path) -> None:
    programs = receivers("python")
    assert len(programs) == 2
    for number, text in enumerate(programs):
        file = tmp_path / f"receiver{number}.py"
        file.write_text(text.replace("9000", str(server.spare_port)))
        env = server.env | {"PYTHONPATH": str(clients / "python")}
        prints_what_is_sent(server, [sys.executable, "-P", "-u", str(file)], tmp_path, env)


def test_typescript(server: Server, clients: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs Node.js")
    [text] = receivers("ts")
    file = clients / "receiver.mjs"
    file.write_text(text.replace("9000", str(server.spare_port)))
    prints_what_is_sent(server, [node, str(file)], clients, server.env)
