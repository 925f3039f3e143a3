"""What an operator does on the command line acts on the processes that run."""

import json
import subprocess
import sys
import time
from typing import Any

import pytest

from domain.access.model import ROLES
from tests.support.table import whole
from tests.flows.api import Api
from tests.flows.stage import ROOT, Stage


def _joinery(stage: Stage, *words: str) -> Any:
    """The JSON that a command prints."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "entrypoints.cli.main", *words, "--json"],
        env={"PYTHONPATH": str(ROOT), **stage.env}, capture_output=True, timeout=30, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def organisation(stage: Stage) -> str:
    """One made on the command line."""
    made = _joinery(stage, "org", "create", "--name", "Fjord", "--kind", "retailer", "--plan", "max")
    return str(made["organisation"])


@pytest.mark.parametrize("role", ["viewer", "editor"])
def test_a_members_key(stage: Stage, organisation: str, role: str) -> None:
    email = f"{role}@fjord.example"
    _joinery(stage, "member", "add", "--org", organisation, "--email", email, "--role", role)
    key = _joinery(stage, "key", "create", "--org", organisation, "--mode", "live", "--member", email.upper())
    api = Api(stage.port, key["secret"])
    for operation in whole():
        if operation.method == "GET" and not operation.ids:
            allowed = operation.scope is None or operation.scope in ROLES[role]
            method = "HEAD" if operation.streams else "GET"  # a stream has no end
            assert (api.call(method, operation.path).status == 200) is allowed, operation.id
    created = api.call("POST", "/v1/sources", {"name": "A", "kind": "push"})
    assert created.status == (201 if "sources:write" in ROLES[role] else 403)


def test_a_revoked_key_is_refused_within_a_second_by_every_process(stage: Stage, organisation: str) -> None:
    key = _joinery(
        stage, "key", "create", "--org", organisation, "--mode", "test", "--restricted", "--scopes", "org:read"
    )
    assert key["secret"].startswith("svc_rk_test_")
    api = Api(stage.port, key["secret"])
    assert api.get("/v1/org")["id"] == organisation and api.call("GET", "/v1/products").status == 403
    _joinery(stage, "key", "revoke", "--org", organisation, "--mode", "test", "--key", key["key"])
    revoked = time.monotonic()
    while api.call("GET", "/v1/org").status != 401:
        assert time.monotonic() - revoked < 1.0
        time.sleep(0.02)
