"""TypeScript client: installed from the server, type-checked and used in Node.js."""

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.receiver_client import ReceiverClient
from tests.clients.programs import run
from tests.flows.feeds import build_catalogue
from tests.flows.service_processes import ServiceProcesses, Tenancy, free_port
from tests.support.faulty_proxy import Fault, FaultyProxy, faulty_proxy
from tests.support.killed_followers import follow_across_kills
from tests.support.webhook_endpoints import create_endpoint

pytestmark = pytest.mark.clients
HERE = Path(__file__).parent
NODE = os.environ.get("NODE") or shutil.which("node") or "node"


@pytest.fixture(scope="module")
def story(node_home: Path) -> Path:
    """Compile the integration under the strictest rules."""
    for name in ("story.ts", "typed.ts"):
        shutil.copy(HERE / name, node_home)
    for name in ("following.mjs", "verifying.mjs", "retrying.mjs"):
        shutil.copy(HERE / name, node_home)
    settings = ("--strict", "--noUncheckedIndexedAccess", "--exactOptionalPropertyTypes", "--target", "es2022", "--module", "nodenext",
            "--lib", "es2023", "--types", "node", "story.ts", "typed.ts")  # fmt: skip
    run(NODE, "node_modules/typescript/bin/tsc", *settings, cwd=node_home)
    return node_home / "story.js"


def test_the_client_and_its_users_are_strictly_typed(story: Path, node_home: Path) -> None:
    """Compiled for browsers, without types of Node.js, and with a check of the declarations."""
    settings = ("--strict", "--noEmit", "--target", "es2022", "--module", "esnext", "--moduleResolution", "bundler",
            "--lib", "es2023,dom,dom.asynciterable", "--typeRoots", "none", "--skipLibCheck", "false", "typed.ts")  # fmt: skip
    run(NODE, "node_modules/typescript/bin/tsc", *settings, cwd=node_home)
    assert story.exists()


def test_an_integration(services: ServiceProcesses, at: ReceiverClient, story: Path, tmp_path: Path) -> None:
    sandbox = services.create_organisation(livemode=False)
    file = tmp_path / "prices.csv"
    file.write_bytes(build_catalogue(10))
    env = {"JOINERY_URL": f"http://127.0.0.1:{services.port}", "JOINERY_KEY": str(sandbox.api.secret)}
    called = json.loads(run(NODE, str(story), str(file), at.url("/story.ts"), cwd=story.parent, **env))
    assert len({re.sub(r" \(.*", "", name) for name in called}) >= 20, called


def test_killed_followers_miss_no_events(
    services: ServiceProcesses, fjord: Tenancy, story: Path, tmp_path: Path
) -> None:
    follow_across_kills(services, fjord, (NODE, str(story.parent / "following.mjs")), tmp_path)


def test_deliveries_are_verified(services: ServiceProcesses, at: ReceiverClient, story: Path, tmp_path: Path) -> None:
    one = create_endpoint(services.create_organisation(livemode=False).api, at, ("*",))
    one.send_test_event()
    one.wait_for_received(1)
    one.rotate_secret(overlap_hours=1)
    one.send_test_event()
    first, second = one.wait_for_received(2)
    received = [
        {
            "body": found.body,
            "headers": {name.lower(): value for name, value in (found.headers or {}).items()},
            "secret": secret,
        }
        for found, secret in ((first, one.secrets[0]), (second, one.secrets[0]), (second, one.secrets[1]))
    ]
    file = tmp_path / "received.json"
    file.write_text(json.dumps(received))
    types = json.loads(run(NODE, str(story.parent / "verifying.mjs"), str(file), cwd=story.parent))
    assert types == ["webhook.test"] * 3 + ["x.y"]


class RetryProgram:
    """Program retrying.mjs behind a faulty proxy."""

    def __init__(self, proxy: FaultyProxy, tenancy: Tenancy, folder: Path) -> None:
        self.proxy, self.tenancy, self.folder = proxy, tenancy, folder

    def run_step(self, name: str, *arguments: str, faults: tuple[Fault, ...] = ()) -> Any:
        self.proxy.faults[:] = faults
        self.proxy.seen.clear()
        env = {"JOINERY_URL": self.proxy.url, "JOINERY_KEY": str(self.tenancy.api.secret)}
        return json.loads(run(NODE, str(self.folder / "retrying.mjs"), name, *arguments, cwd=self.folder, **env))


@pytest.fixture
def retry_program(services: ServiceProcesses, fjord: Tenancy, story: Path) -> Iterator[RetryProgram]:
    with faulty_proxy(services.port) as proxy:
        yield RetryProgram(proxy, fjord, story.parent)


def test_transient_failures_are_retried_without_double_effects(retry_program: RetryProgram) -> None:
    refusal = Fault(503, {"Retry-After": "1"})
    id = retry_program.run_step("create", faults=(Fault(late=True), Fault(), refusal))
    keys = {headers["idempotency-key"] for _, _, headers in retry_program.proxy.seen}
    assert len(retry_program.proxy.seen) == 4 and len(keys) == 1
    assert [one["id"] for one in retry_program.tenancy.api.list_all("/v1/sources")] == [id]
    assert (
        retry_program.run_step("read", faults=(Fault(429, {"Retry-After": "1"}, "rate_limited"), Fault(502), Fault()))
        == "organisation"
    )
    assert len(retry_program.proxy.seen) == 4


def test_a_retried_change_is_not_reported_as_a_conflict(retry_program: RetryProgram) -> None:
    id = retry_program.run_step("create")
    assert retry_program.run_step("update", id, faults=(Fault(late=True),)) == [True, True, True, "Renamed"]
    assert retry_program.run_step("keyless", id, faults=(Fault(),)) == [True, True]
    assert len(retry_program.proxy.seen) == 1
    assert retry_program.run_step("unreachable", f"http://127.0.0.1:{free_port()}") == [True, True, None]
