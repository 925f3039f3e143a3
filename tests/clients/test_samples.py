"""Every code block in docs/clients.md and in the packages' READMEs runs unchanged and separately.

Samples of other pages run page by page (tests/docs); these never end, or require values of the reader.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.docs.commands import read_blocks
from tests.flows.feeds import build_catalogue
from tests.flows.service_processes import ROOT, ServiceProcesses, Tenancy, wait_until

pytestmark = pytest.mark.clients
FILES = ("docs/clients.md", "entrypoints/clients/python/METADATA.jinja", "entrypoints/clients/typescript/README.md")
SECRET = "whsec_" + "b2xk" * 8
PYTHON = """
import os, time
from datetime import datetime, timezone
from contextlib import nullcontext
from standardwebhooks.webhooks import Webhook
from joinery_client import Joinery
client, database, load_cursor = Joinery(), nullcontext(), lambda: None
store = save_cursor = print
body, secret, now = b'{"type":"x.y"}', os.environ["WEBHOOK_SECRET"], datetime.now(timezone.utc)
headers = {"webhook-id": "evt_1", "webhook-timestamp": str(int(now.timestamp())),
           "webhook-signature": Webhook(secret).sign("evt_1", now, body.decode())}
"""
SCRIPT = """
import { Webhook } from 'standardwebhooks'
import * as all from 'joinery-client'
const secret = '%s', body = '{"type":"x.y"}', at = new Date()
const request = { headers: { 'webhook-id': 'evt_1', 'webhook-timestamp': String(Math.floor(at / 1000)),
  'webhook-signature': new Webhook(secret).sign('evt_1', at, body) } }
%s
"""
CLIENT = "const client = new all.Joinery()"
EXPECTED = {"JoineryError, NotFound": "not_found", "WebhookVerificationError": "", "verifyWebhook": ""}
"""What blocks print that print no more than this; others must print something."""


def list_samples(language: str) -> list[tuple[str, str]]:
    found = [(file, block.text) for file in FILES for block in read_blocks(ROOT / file, language)]
    assert len(found) >= 5
    return found


@pytest.fixture(scope="module")
def sandbox(services: ServiceProcesses) -> Tenancy:
    """Create products and changed offers."""
    made = services.create_organisation(livemode=False)
    source = made.api.create_source("file", config={"currency": "usd"})
    for content in (build_catalogue(3), build_catalogue(3, price=120)):
        assert made.api.import_file(source, content)["status"] == "succeeded"
    return made


def run_sample(argv: tuple[str, ...], folder: Path, env: Mapping[str, str], endless: bool) -> str:
    """Return the output of a sample; an endless sample is stopped after its first output."""
    with (folder / "printed").open("w") as file:
        process = subprocess.Popen(argv, cwd=folder, env={**os.environ, **env}, stdout=file, stderr=subprocess.STDOUT)
    try:
        if endless:
            wait_until(lambda: (folder / "printed").read_text() or process.poll() is not None, "it prints", 30)
            assert process.poll() is None, (folder / "printed").read_text()
        else:
            assert process.wait(60) == 0, (folder / "printed").read_text()
    finally:
        process.kill()
        process.wait()
    return (folder / "printed").read_text()


def check_output(code: str, text: str) -> None:
    least = next((part for mark, part in EXPECTED.items() if mark in code), None)
    assert text.strip() if least is None else least in text, (code, text)
    assert "Error" not in text and "answer 400" not in text, text


@pytest.mark.parametrize(("file", "code"), list_samples("python"))
def test_python(
    services: ServiceProcesses, sandbox: Tenancy, python_home: Path, tmp_path: Path, file: str, code: str
) -> None:
    (tmp_path / "prices.csv").write_bytes(build_catalogue(2))
    env = {
        "JOINERY_URL": f"http://127.0.0.1:{services.port}",
        "JOINERY_KEY": str(sandbox.api.secret),
        "PYTHONPATH": str(python_home),
        "WEBHOOK_SECRET": SECRET,
    }
    text = run_sample((sys.executable, "-u", "-c", PYTHON + code), tmp_path, env, "follow(" in code)
    check_output(code, text)


@pytest.mark.parametrize(("file", "code"), list_samples("ts"))
def test_typescript(
    services: ServiceProcesses, sandbox: Tenancy, node_home: Path, tmp_path: Path, file: str, code: str
) -> None:
    (tmp_path / "prices.csv").write_bytes(build_catalogue(2))
    (tmp_path / "node_modules").symlink_to(node_home / "node_modules")
    (tmp_path / "sample.mjs").write_text(SCRIPT % (SECRET, "" if "const client" in code else CLIENT) + code)
    env = {
        "JOINERY_URL": f"http://127.0.0.1:{services.port}",
        "JOINERY_KEY": str(sandbox.api.secret),
        "WEBHOOK_SECRET": SECRET,
    }
    text = run_sample((shutil.which("node") or "node", "sample.mjs"), tmp_path, env, "follow(" in code)
    check_output(code, text)
