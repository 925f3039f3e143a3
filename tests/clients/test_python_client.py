"""Python client: installed from the server, type-checked and used."""

import json
import re
import shutil
import sys
from pathlib import Path

import pytest

from benchmarks.receiver_client import ReceiverClient
from tests.clients.programs import run
from tests.flows.feeds import build_catalogue
from tests.flows.service_processes import ServiceProcesses, Tenancy
from tests.support.killed_followers import follow_across_kills
from tests.support.webhook_endpoints import create_endpoint

pytestmark = pytest.mark.clients
HERE = Path(__file__).parent
TYPED = ("story.py", "async_story.py", "typed.py", "following.py")


def test_the_client_and_its_users_are_strictly_typed(python_home: Path) -> None:
    for name in TYPED:
        shutil.copy(HERE / name, python_home)
    settings = ("-m", "mypy", "--strict", "--python-version", "3.11", "--cache-dir", str(python_home / "cache"))
    assert "no issues" in run(sys.executable, *settings, "joinery_client", *TYPED, cwd=python_home)


@pytest.mark.parametrize("story", ["story.py", "async_story.py"])
def test_an_integration(
    services: ServiceProcesses, at: ReceiverClient, python_home: Path, tmp_path: Path, story: str
) -> None:
    sandbox = services.create_organisation(livemode=False)
    file = tmp_path / "prices.csv"
    file.write_bytes(build_catalogue(10))
    env = {
        "JOINERY_URL": f"http://127.0.0.1:{services.port}",
        "JOINERY_KEY": str(sandbox.api.secret),
        "PYTHONPATH": str(python_home),
    }
    printed = run(sys.executable, str(HERE / story), str(file), at.url(f"/{story}"), cwd=tmp_path, **env)
    called = json.loads(printed)
    assert len({re.sub(r" \(.*", "", name) for name in called}) >= 20, called


def test_killed_followers_miss_no_events(
    services: ServiceProcesses, fjord: Tenancy, python_home: Path, tmp_path: Path
) -> None:
    argv = (sys.executable, str(HERE / "following.py"))
    follow_across_kills(services, fjord, argv, tmp_path, PYTHONPATH=str(python_home))


def test_deliveries_are_verified(services: ServiceProcesses, at: ReceiverClient, python_home: Path) -> None:
    one = create_endpoint(services.create_organisation(livemode=False).api, at, ("*",))
    one.send_test_event()
    one.wait_for_received(1)
    one.rotate_secret(overlap_hours=1)
    one.send_test_event()
    received = one.wait_for_received(2)
    sys.path.insert(0, str(python_home))
    try:
        from joinery_client import WebhookVerificationError, verify_webhook
    finally:
        sys.path.pop(0)
    for delivery in received:
        body, headers = str(delivery.body).encode(), dict(delivery.headers or {})
        assert verify_webhook(body, headers, one.secrets)["id"] == delivery.id
        with pytest.raises(WebhookVerificationError):
            verify_webhook(body + b" ", headers, one.secrets)
    last = received[-1]
    for secret in one.secrets:  # both secrets sign during a rotation
        assert verify_webhook(str(last.body), dict(last.headers or {}), secret)["type"] == "webhook.test"
