"""Operators' commands for vendor profiles, claims and invitations, and the deletion of a vendor."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from domain.brand.model import ClaimRequest, EvidenceInput, EvidenceKind
from domain.brand.usecases.claims import ClaimService
from domain.kernel.tenancy import AuditContext, Tenant
from domain.orgs.usecases import erasure
from entrypoints.cli.main import main
from entrypoints.container import open_dependencies
from entrypoints.provisioning import OPERATOR
from entrypoints.settings import read_settings
from ports.unit_of_work import UnitOfWork
from tests.postgres.databases import create_database

SECRET = "a secret of at least thirty-two characters"
Command = Callable[..., Any]


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    address = asyncio.run(create_database("brand"))
    given = {"JOINERY_DATABASE_URL": address, "JOINERY_SECRET": SECRET}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    return given


@pytest.fixture
def command(environment: dict[str, str], capsys: pytest.CaptureFixture[str]) -> Command:
    def run(*words: str, fails: str = "") -> Any:
        code = main([*words, "--json"])
        captured = capsys.readouterr()
        assert code == (1 if fails else 0), captured.err
        if fails:
            assert fails in captured.err
            return None
        return json.loads(captured.out)

    return run


def create_claim(environment: dict[str, str], org: str, profile: str) -> str:
    async def create() -> str:
        settings = replace(read_settings({**environment}), objects_url="")
        async with open_dependencies(settings) as dependencies:
            context = AuditContext(OPERATOR, "tests")
            async with dependencies[UnitOfWork].begin(Tenant(org, True), context) as tx:
                evidence = (EvidenceInput(EvidenceKind.DOCUMENT, "Trade mark 1"),)
                claim = await dependencies[ClaimService].create_claim(tx, ClaimRequest(profile, evidence))
        return str(claim.id)

    return asyncio.run(create())


def fetch_rows(environment: dict[str, str], statement: str) -> list[Any]:
    with psycopg.connect(environment["JOINERY_DATABASE_URL"]) as connection:
        return connection.execute(statement.encode()).fetchall()


def test_an_operator_manages_profiles_and_claims(
    environment: dict[str, str], command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    vendor = command("org", "create", "--name", "Vendor", "--kind", "vendor")["organisation"]
    command("org", "create", "--name", "Shop", "--kind", "retailer")
    assert fetch_rows(environment, "SELECT livemode, name FROM vendor_profiles ORDER BY 1") == [
        (False, "Vendor"),
        (True, "Vendor"),
    ]
    made = command("profile", "create", "--name", "Fjord", "--domain", "fjord.example", "--brand", "Fjord")
    assert (made["status"], made["brands"]) == ("unclaimed", ["Fjord"])
    command("profile", "create", "--name", "F", "--brand", "FJORD Ltd", fails="has the profile")
    duplicate = command("profile", "create", "--name", "Fjord Oy", "--brand", "Nordlys")["profile"]
    assert command("profile", "merge", duplicate, made["profile"])["brands"] == ["Fjord", "Nordlys"]
    assert command("profile", "unmerge", duplicate)["brands"] == ["Fjord"]
    invited = command("invitation", "create", "--profile", made["profile"], "--email", "anna@fjord.example", "--send")
    assert invited["code"].startswith("svc_claim_")
    assert fetch_rows(environment, "SELECT purpose FROM outgoing_mail") == [("claim_invitation",)]
    command("invitation", "revoke", invited["invitation"])
    command("invitation", "revoke", invited["invitation"], fails="no open invitation")
    claim = create_claim(environment, vendor, made["profile"])
    assert [row["claim"] for row in command("claim", "list", "--status", "pending")["claims"]] == [claim]
    command("claim", "revoke", claim, "--reason", "No.", fails="pending")
    approved = command("claim", "approve", claim, "--reason", "Trade mark checked.")
    assert (approved["status"], approved["decision"]["reason"]) == ("approved", "Trade mark checked.")
    shown = command("claim", "show", claim)
    assert (shown["organisation"], shown["profile"]["verified"]) == (vendor, True)
    command("claim", "reject", claim, "--reason", "No.", fails="approved")
    revoked = command("claim", "revoke", claim, "--reason", "The domain has a new owner.")
    assert revoked["status"] == "revoked"
    command("claim", "approve", create_claim(environment, vendor, made["profile"]), "--reason", "Transferred back.")
    status_terms = "SELECT term FROM vendor_profile_terms WHERE livemode AND term ^@ 's:' ORDER BY 1"
    assert fetch_rows(environment, status_terms) == [("s:claimed:verified",), ("s:unclaimed",)]
    monkeypatch.setattr(erasure, "GRACE_SECONDS", 0.0)
    command("org", "delete", "--org", "Vendor", "--confirm", "Vendor")
    assert fetch_rows(environment, "SELECT name, status, holder FROM vendor_profiles ORDER BY 1") == [
        ("Fjord", "unclaimed", None),
        ("Fjord Oy", "unclaimed", None),
    ]
    assert fetch_rows(environment, status_terms) == [("s:unclaimed",)] * 2
    assert fetch_rows(environment, "SELECT FROM brand_claims") == []
    assert fetch_rows(environment, "SELECT FROM vendor_profile_terms WHERE term = 'w:vendor'") == []
