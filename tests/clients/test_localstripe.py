"""Stripe's adapter against localstripe, an independent imitation of Stripe, which runs in an environment of its own (GPL)."""

import json
import socket
import subprocess
import sys
import threading
import time
import urllib.request
import venv
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from adapters.stripe_payments import StripePayments
from domain.billing.ports import InvalidSignature

pytestmark = [pytest.mark.clients, pytest.mark.asyncio]
PACKAGE = "localstripe==1.15.10"
SECRET = "whsec_localstripe"
SERVER = """import sys
from aiohttp import web
from localstripe.server import app
web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), print=None)"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of a localstripe server."""
    folder = tmp_path_factory.mktemp("localstripe")
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", PACKAGE], check=True)
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    # localstripe stores its state in the temporary folder
    with subprocess.Popen([python, "-c", SERVER, str(port)], env={"TMPDIR": str(folder)}, cwd=folder) as server:
        try:
            _wait_for(port)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()


def _wait_for(port: int) -> None:
    for _ in range(100):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    pytest.fail("localstripe did not start.")


@pytest.fixture
def notifications(address: str) -> Iterator[list[tuple[bytes, str]]]:
    """Return a list that receives the bodies and signatures of notifications."""
    received: list[tuple[bytes, str]] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append((self.rfile.read(int(self.headers["Content-Length"])), self.headers["Stripe-Signature"]))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    endpoint = {"url": f"http://127.0.0.1:{server.server_port}/", "secret": SECRET}
    request = urllib.request.Request(
        f"{address}/_config/webhooks/one", json.dumps(endpoint).encode(), {"Content-Type": "application/json"}
    )
    urllib.request.urlopen(request).close()
    yield received
    server.shutdown()


async def test_requests_and_signatures_agree(address: str, notifications: list[tuple[bytes, str]]) -> None:
    payments = StripePayments("sk_test_localstripe", "pk_test_localstripe", SECRET, url=address)
    customer = await payments.create_customer("org_1", "Fjord Living", "key")
    assert (await payments.create_card_setup(customer, "card")).startswith("seti_")
    account = await payments.fetch_account(customer)
    assert (account.customer, account.details.name, account.subscription) == (customer, "Fjord Living", None)
    await payments.delete_customer(customer)
    for _ in range(100):
        if len(notifications) >= 2:
            break
        time.sleep(0.1)
    assert {payments.parse_event(*one).customer for one in notifications} == {customer}
    body, signature = notifications[0]
    with pytest.raises(InvalidSignature):
        payments.parse_event(body + b" ", signature)
