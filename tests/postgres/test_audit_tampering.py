"""Detection by `joinery audit verify` of audit entries that a superuser changed in the database."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
import pytest_asyncio

from adapters.postgres.maintenance import PostgresMaintenance
from adapters.postgres.nodes.connections import connect
from adapters.postgres.nodes.pool import Pool
from domain.audit.model import Change, compute_lowest_id
from domain.audit.ports import AuditLog
from domain.audit.usecases import AuditService
from domain.kernel import retention
from domain.kernel.tenancy import Actor, Tenant
from ports.unit_of_work import UnitOfWork
from tests.postgres.databases import create_temporary_database
from tests.support import builders
from tests.support.forkserver import run_joinery
from tests.tenancy.application import OPERATIONS, ServedApplication, call_operation, serve_application

pytestmark = pytest.mark.asyncio(loop_scope="module")
ROOT = Path(__file__).parents[2]
SECRET = "a secret of at least thirty-two characters"
CALL = replace(builders.CALL, actor=Actor("user", "usr_1"), operation="sources.update", is_reversible=True)
OWN = "org = %(org)s AND livemode"


@dataclass
class TamperingHarness:
    """Service with its own database and a superuser's connection."""

    address: str
    application: ServedApplication
    owner: psycopg.AsyncConnection[Any]

    async def create_tenant(self, entries: int = 9) -> Tenant:
        """Create a tenant with that many entries in separate transactions."""
        tenant = Tenant((await self.application.create_organisation()).id, True)
        for number in range(entries):
            async with self.application.dependencies[UnitOfWork].begin(tenant, CALL) as tx:
                await tx[AuditLog].add(
                    Change("source", "src_1", "update", {"name": f"N{number}"}, {"name": f"N{number + 1}"})
                )
        return tenant

    async def find_faults(self, tenant: Tenant) -> list[tuple[str, int]]:
        """Return the faults of the tenant's chain."""
        async with self.application.dependencies[UnitOfWork].begin_reading(tenant) as tx:
            return [(fault.kind.value, fault.sequence) for fault in (await AuditService().verify_chain(tx)).faults]

    async def tamper(self, tenant: Tenant, *statements: str) -> None:
        for statement in statements:
            await self.owner.execute(statement.replace("OWN", OWN).encode(), {"org": tenant.org})

    def run_verify(self, *words: str) -> tuple[int, Any]:
        """Run `joinery audit verify` and return exit status and output."""
        settings = {"JOINERY_DATABASE_URL": self.address, "JOINERY_SECRET": SECRET}
        done = run_joinery("audit", "verify", *words, "--json", env=settings)
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def harness(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[TamperingHarness]:
    async with (
        create_temporary_database("tampering") as address,
        serve_application(tmp_path_factory.mktemp("tampering"), JOINERY_DATABASE_URL=address) as application,
        await connect(address, "tampering") as owner,
    ):
        yield TamperingHarness(address, application, owner)


_COLUMNS = (
    "org, livemode, id, actor, action, target, target_id, change, before, after, request_id, created_at, reversible, kept, "
    "sequence, hash"
)
_SHIFT = "UPDATE audit_entries SET sequence = -sequence WHERE OWN AND sequence > 4"
TAMPERINGS = {
    "a field": (('UPDATE audit_entries SET after = \'{"name": "x"}\' WHERE OWN AND sequence = 4',), [("changed", 4)]),
    "who": (
        ("UPDATE audit_entries SET actor = jsonb_set(actor, '{id}', '\"usr_2\"') WHERE OWN AND sequence = 4",),
        [("changed", 4)],
    ),
    "for whom": (
        (
            "UPDATE audit_entries SET actor = jsonb_set(actor, '{on_behalf_of}', '\"usr_2\"') WHERE OWN AND sequence = 4",
        ),
        [("changed", 4)],
    ),
    "when": (
        ("UPDATE audit_entries SET created_at = created_at - interval '1 s' WHERE OWN AND sequence = 4",),
        [("changed", 4)],
    ),
    "of what": (("UPDATE audit_entries SET target_id = 'src_2' WHERE OWN AND sequence = 4",), [("changed", 4)]),
    "one is gone": (("DELETE FROM audit_entries WHERE OWN AND sequence = 4",), [("missing", 4)]),
    "the last ones are gone": (("DELETE FROM audit_entries WHERE OWN AND sequence > 7",), [("missing", 8)]),
    "all are gone": (("DELETE FROM audit_entries WHERE OWN",), [("missing", 1)]),
    "where it begins": (
        (
            "UPDATE audit_entries SET target_id = 'src_2' WHERE OWN AND sequence = 4",
            "UPDATE audit_chains SET began = 6, anchor = (SELECT hash FROM audit_entries WHERE OWN AND sequence = 6) WHERE OWN",
        ),
        [("changed", number) for number in range(1, 7)],
    ),
    "all, and where it begins": (
        ("DELETE FROM audit_entries WHERE OWN", "UPDATE audit_chains SET began = last, anchor = hash WHERE OWN"),
        [("missing", 1)],
    ),
    "the head as well": (
        ("DELETE FROM audit_entries WHERE OWN AND sequence > 7", "UPDATE audit_chains SET last = 7 WHERE OWN"),
        [("changed", 7)],
    ),
    "one gone, others moved up": (
        (
            "DELETE FROM audit_entries WHERE OWN AND sequence = 4",
            _SHIFT,
            "UPDATE audit_entries SET sequence = -sequence - 1 WHERE OWN AND sequence < 0",
        ),
        [("changed", 4), ("missing", 9)],
    ),
    "two changed places": (
        (
            "UPDATE audit_entries SET sequence = -4 WHERE OWN AND sequence = 4",
            "UPDATE audit_entries SET sequence = 4 WHERE OWN AND sequence = 5",
            "UPDATE audit_entries SET sequence = 5 WHERE OWN AND sequence = -4",
        ),
        [("reordered", 4), ("reordered", 6)],
    ),
    "one put in": (
        (
            _SHIFT,
            "UPDATE audit_entries SET sequence = -sequence + 1 WHERE OWN AND sequence < 0",
            f"INSERT INTO audit_entries ({_COLUMNS}) SELECT {_COLUMNS} FROM (SELECT (jsonb_populate_record(a, jsonb_build_object("
            "'id', 'aud_forged', 'sequence', 5))).* FROM audit_entries a WHERE OWN AND sequence = 4) AS forged",
        ),
        [("inserted", 5)],
    ),
    "one put behind": (
        (
            f"INSERT INTO audit_entries ({_COLUMNS}) SELECT {_COLUMNS} FROM (SELECT (jsonb_populate_record(a, jsonb_build_object("
            "'id', 'aud_forged', 'sequence', 10))).* FROM audit_entries a WHERE OWN AND sequence = 9) AS forged",
        ),
        [("changed", 10), ("inserted", 10)],
    ),
    "another's": (
        (
            "UPDATE audit_entries e SET before = o.before, after = o.after, hash = o.hash FROM audit_entries o "
            "WHERE e.OWN AND e.sequence = 4 AND o.org = e.org AND o.livemode AND o.sequence = 5".replace(
                "e.OWN", "e.org = %(org)s AND e.livemode"
            ),
        ),
        [("changed", 4), ("inserted", 5)],
    ),
}


@pytest.mark.parametrize(("statements", "faults"), TAMPERINGS.values(), ids=TAMPERINGS)
async def test_tampering_is_detected(
    harness: TamperingHarness, statements: tuple[str, ...], faults: list[tuple[str, int]]
) -> None:
    tenant = await harness.create_tenant()
    assert await harness.find_faults(tenant) == []
    await harness.tamper(tenant, *statements)
    assert await harness.find_faults(tenant) == faults


async def test_the_command_names_the_entries(harness: TamperingHarness) -> None:
    whole, broken = await harness.create_tenant(), await harness.create_tenant()
    status, answer = await asyncio.to_thread(harness.run_verify, "--org", whole.org)
    live, test = answer["chains"]
    assert (status, answer["whole"], live["entries"], live["last"], test["entries"]) == (0, True, 9, 9, 0)
    noted = f"9:{live['hash']}"
    await harness.tamper(broken, "UPDATE audit_entries SET action = 'sources.create' WHERE OWN AND sequence = 2")
    status, answer = await asyncio.to_thread(harness.run_verify)
    [fault] = [one for chain in answer["chains"] if chain["organisation"] == broken.org for one in chain["faults"]]
    assert (status, answer["whole"], fault["kind"], fault["sequence"]) == (1, False, "changed", 2)
    assert fault["entry"].startswith("aud_")
    await harness.tamper(whole, "DELETE FROM audit_entries WHERE OWN", "DELETE FROM audit_chains WHERE OWN")
    assert await harness.find_faults(whole) == [], "a completely forged chain is detected by the noted head only"
    words = ("--org", whole.org, "--mode", "live", "--noted", noted)
    status, answer = await asyncio.to_thread(harness.run_verify, *words)
    assert (status, answer["chains"][0]["faults"]) == (1, [{"kind": "missing", "sequence": 9, "until": 9}])


async def test_deleting_old_entries_keeps_the_chain_valid(harness: TamperingHarness) -> None:
    tenant = await harness.create_tenant(4)
    old = datetime.now(UTC) - retention.AUDIT_ENTRIES - timedelta(days=1)
    async with harness.application.dependencies[UnitOfWork].begin(tenant, CALL) as tx:
        entry = await tx[AuditLog].add(Change("source", "src_1", "update", {}, {}))
        await tx[AuditLog].store_sealed(entry, b"sealed")
    await harness.tamper(
        tenant,
        f"UPDATE audit_entries SET id = '{compute_lowest_id(old)[:-4]}000' || sequence WHERE OWN AND sequence < 3",
        "UPDATE audit_kept SET expires_at = now() WHERE OWN",
        "UPDATE organisations SET created_at = created_at - interval '3 years' WHERE id = %(org)s",
    )
    await PostgresMaintenance(harness.application.dependencies[Pool]).purge_audit_entries()
    assert await harness.find_faults(tenant) == []
    async with harness.application.dependencies[UnitOfWork].begin_reading(tenant) as tx:
        report = await AuditService().verify_chain(tx)
        assert (
            report.valid_entries,
            report.unchained_entries,
            report.head.unchained_until,
            await tx[AuditLog].get_sealed(entry),
        ) == (
            3,
            0,
            2,
            None,
        )
    await harness.tamper(tenant, "DELETE FROM audit_entries WHERE OWN AND sequence = 3")
    assert await harness.find_faults(tenant) == [("missing", 3)]


async def test_concurrent_undos_undo_once(harness: TamperingHarness) -> None:
    organisation = await harness.application.create_organisation()
    mine = await harness.application.create_tenancy(organisation, livemode=True)
    undo = next(row for row in OPERATIONS if row.id == "audit.undo")
    update = next(row for row in OPERATIONS if row.id == "matching.update_judge_settings")
    answers = await asyncio.gather(*(call_operation(mine.client, undo, mine.ids) for _ in range(6)))
    assert sorted(answer.status for answer in answers) == [200, 409, 409, 409, 409, 409]
    settings = (await mine.client.get(update.path)).json()
    assert settings["auto_merge_at"] == 0.95
    assert await harness.find_faults(mine.tenant) == []


async def test_concurrent_writes_and_undos_keep_the_chain_valid(harness: TamperingHarness) -> None:
    mine = await harness.application.create_tenancy(await harness.application.create_organisation(), livemode=True)

    async def write(writer: int) -> None:
        for turn in range(5):
            body = {"auto_merge_at": 0.5 + writer / 20, "auto_dismiss_at": 0.5 + turn / 20}
            await mine.client.send_json("PATCH", "/v1/matching/judge-settings", body)
            newest = (await mine.client.get("/v1/audit-events?undoable=true&limit=1")).json()["data"]
            for entry in newest:
                path = f"/v1/audit-events/{entry['id']}/undo"
                answer = await mine.client.post(path, idempotency_key=f"{writer}-{turn}")
                assert answer.status in (200, 403, 409, 422)  # 403 for the memory of a person, answer.body

    await asyncio.gather(*(write(writer) for writer in range(8)))
    assert await harness.find_faults(mine.tenant) == []
