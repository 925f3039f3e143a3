"""Storage quotas: runs, files and pushes with a real database and real files."""

import json
import os
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from secrets import token_hex
from typing import Any

import psycopg
import pytest
import pytest_asyncio

from domain.storage.ports import StorageUpkeep
from domain.storage.usecases import StorageSweeper
from ports.clock import Clock
from ports.objects import ObjectStore
from ports.unit_of_work import UnitOfWork
from tests.flows.feeds import FeedServer, build_catalogue, build_record, serve_feeds
from tests.flows.in_process_service import InProcessService, open_service
from tests.flows.service_processes import ServiceProcesses
from tests.support.forkserver import run_joinery
from tests.support.postgres import database


@pytest.fixture
def feeds() -> Iterator[FeedServer]:
    """Run a feed server."""
    with serve_feeds() as served:
        yield served


class StorageMeter:
    """The service with measurements of its storage."""

    def __init__(self, service: InProcessService, folder: Path) -> None:
        self.service, self.folder, self.plan = service, folder, f"p{token_hex(6)}"

    async def set_allowance(self, bytes: int) -> None:
        """Set the storage that the organisation's plan includes."""
        await self.execute(
            "INSERT INTO plans SELECT %s, name, tier, currency, monthly, features, meters, delivery_days, "
            "request_log_days, 9 FROM plans WHERE code = 'max' ON CONFLICT DO NOTHING", self.plan,
        )  # fmt: skip
        await self.execute(
            "UPDATE plans SET meters = jsonb_set(meters, '{stored_bytes,included}', to_jsonb(%s::bigint)) WHERE code = %s",
            bytes, self.plan,
        )  # fmt: skip
        await self.execute("UPDATE organisations SET plan = %s WHERE id = %s", self.plan, self.service.tenant.org)

    async def execute(self, statement: str, *values: Any) -> None:
        async with await psycopg.AsyncConnection.connect(await database(), autocommit=True) as owner:
            await owner.execute(statement.encode(), values)

    async def measure_usage(self) -> int:
        """Return the counted bytes, and check that they equal the sum of the ledger."""
        org = self.service.tenant.org
        [(counted, listed)] = await self.service.fetch_rows(
            "SELECT (SELECT sum(bytes) FROM storage_usage WHERE org = %s), "
            "(SELECT coalesce(sum(bytes), 0) FROM stored_objects WHERE org = %s AND NOT freed) + "
            "(SELECT coalesce(sum(octet_length(records) + 1), 0) FROM push_parts WHERE org = %s AND counted)",
            org, org, org,
        )  # fmt: skip
        assert counted == listed
        return int(counted or 0)

    def list_file_sizes(self) -> list[int]:
        """Return the sizes of the organisation's objects."""
        found = (self.folder / "objects").rglob("*")
        return sorted(path.stat().st_size for path in found if path.is_file() and self.service.tenant.org in path.parts)

    async def sweep_storage(self) -> None:
        """Free due objects, like the scheduler."""
        parts = self.service.world.dependencies
        await StorageSweeper(parts[UnitOfWork], parts[StorageUpkeep], parts[ObjectStore], parts[Clock]).free_due()


@pytest_asyncio.fixture
async def storage(tmp_path: Path) -> AsyncIterator[StorageMeter]:
    """Run the service in this process."""
    async with open_service(tmp_path) as service:
        yield StorageMeter(service, tmp_path)


@pytest.mark.asyncio
async def test_a_feed_beyond_the_quota_is_refused(storage: StorageMeter, feeds: FeedServer) -> None:
    service, small, large = storage.service, build_catalogue(3), build_catalogue(40)
    await storage.set_allowance(len(small) + len(large) - 1)
    source = await service.create_source(config={"url": feeds.serve("/feed.csv", small), "currency": "usd"})

    async def pulled() -> Any:
        assert (await service.client.post(f"/v1/sources/{source}/runs")).status == 202
        await service.process_lane(source)
        return await service.get_newest_run(source)

    assert (await pulled())["status"] == "succeeded"
    before, files = await service.fetch_catalogue_rows(), storage.list_file_sizes()
    assert (await storage.measure_usage(), files) == (len(small), [len(small)])
    feeds.serve("/feed.csv", large)
    for _ in range(4):
        run = await pulled()
        assert (run["status"], run["error"]["code"]) == ("failed", "quota_exceeded")
        assert "change the plan" in run["error"]["message"]
    assert await service.fetch_catalogue_rows() == before and (
        await storage.measure_usage(),
        storage.list_file_sizes(),
    ) == (len(small), files)
    assert (await service.client.get(f"/v1/sources/{source}")).json()["status"] == "active", (
        "source health is unaffected"
    )
    feeds.serve("/feed.csv", small)
    assert (await pulled())["stats"]["unchanged_feed"] == 1, "the same content needs no room"
    await storage.set_allowance(len(small) + len(large))
    feeds.serve("/feed.csv", large)
    assert (await pulled())["stats"]["products_created"] == 37
    assert await storage.measure_usage() == len(small) + len(large)


@pytest.mark.asyncio
async def test_old_snapshots_are_deleted_for_new_ones(storage: StorageMeter, feeds: FeedServer) -> None:
    service, feed = storage.service, [build_catalogue(20, price=100 + number) for number in range(6)]
    size = max(map(len, feed))
    await storage.set_allowance(3 * size)
    source = await service.create_source(config={"url": feeds.serve("/feed.csv", feed[0]), "currency": "usd"})
    for content in feed:
        feeds.serve("/feed.csv", content)
        await service.client.post(f"/v1/sources/{source}/runs")
        await service.process_lane(source)
        assert (await service.get_newest_run(source))["status"] == "succeeded"
        await storage.execute(  # two hours pass
            "WITH aged AS MATERIALIZED (SELECT org, key, free_after - interval '2 hours' AS at FROM stored_objects) "
            "UPDATE stored_objects s SET free_after = a.at FROM aged a WHERE s.org = %s AND s.org = a.org AND s.key = a.key",
            service.tenant.org,
        )
    await storage.sweep_storage()
    assert await storage.measure_usage() <= 3 * size and storage.list_file_sizes() == sorted(map(len, feed[-3:]))


@pytest.mark.asyncio
async def test_a_file_that_fills_the_quota(storage: StorageMeter) -> None:
    content = build_catalogue(5)
    await storage.set_allowance(len(content))
    run = await storage.service.import_file(content)
    assert run["status"] == "succeeded" and await storage.measure_usage() == len(content)
    await storage.sweep_storage()
    assert storage.list_file_sizes() == [len(content)], "only the snapshot remains, the upload is deleted"
    source = await storage.service.create_source("file", config={"currency": "usd"})
    announcement = {"filename": "a.csv", "content_type": "text/csv", "bytes": 1}
    assert (await storage.service.client.post(f"/v1/sources/{source}/uploads", announcement)).code == "quota_exceeded"


@pytest.mark.asyncio
async def test_an_unreadable_file_is_freed_after_its_run(storage: StorageMeter) -> None:
    run = await storage.service.import_file(b"\x00\x01 no feed")
    assert run["status"] in ("failed", "needs_mapping")
    await storage.sweep_storage()
    assert await storage.measure_usage() == sum(storage.list_file_sizes()) == len(b"\x00\x01 no feed")


@pytest.mark.asyncio
async def test_pushes(storage: StorageMeter) -> None:
    service = storage.service
    source = await service.create_source("push", config={"currency": "usd"})
    for number in range(3):
        body = {"records": [build_record(f"P{number}")], "batch": "b", "more": number < 2}
        assert (await service.client.post(f"/v1/sources/{source}/records", body)).status == 202
    pushed = await storage.measure_usage()
    await service.process_lane(source)
    assert (await service.get_newest_run(source))["status"] == "succeeded"
    assert await storage.measure_usage() == pushed and storage.list_file_sizes() == [pushed]


def test_the_source_quota_holds_across_processes(services: ServiceProcesses) -> None:
    tenancy = services.create_organisation(plan="free")
    tenancy.api.create_source("push")
    body = {"name": "Feed", "kind": "push"}
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: tenancy.api.call("POST", "/v1/sources", body), range(8)))
    assert sorted(answer.status for answer in answers) == [201] + 7 * [429]
    refused = next(answer for answer in answers if answer.status == 429)
    assert refused.code == "quota_exceeded" and int(refused.headers["retry-after"]) > 0
    assert len(tenancy.api.list_all("/v1/sources")) == 2


def test_the_doctor_lists_orphaned_files_and_deletes_them(services: ServiceProcesses) -> None:
    tenancy = services.create_organisation()
    org = tenancy.tenant.org
    source = tenancy.api.create_source("file", config={"currency": "usd"})
    announcement = {"filename": "a.csv", "content_type": "text/csv", "bytes": 10}
    upload = tenancy.api.post(f"/v1/sources/{source}/uploads", announcement)
    assert tenancy.api.put_file(upload["target"], b"0123456789").status == 200
    tenancy.api.push(tenancy.api.create_source("push"), [build_record("A")], batch="b", more=True)
    orphan = services.home / "objects" / "snapshots" / org / "live" / "gone-0~"
    orphan.parent.mkdir(parents=True, exist_ok=True)
    orphan.write_bytes(b"x" * 100)
    os.utime(orphan, (0, 0))
    services.fetch_rows("UPDATE stored_objects SET free_after = now() WHERE org = %(org)s", org=org)
    seen = _run_doctor(services)
    named = {finding["name"]: finding for finding in seen["findings"]}
    assert "as upload" in named["storage"]["detail"] and "open, the oldest" in named["batches"]["detail"]
    assert seen["storage"]["orphans"]["count"] >= 1 and org in [one["org"] for one in seen["storage"]["batches"]]
    due = {one["kind"]: one for one in seen["storage"]["holdings"]}
    assert due["upload"]["due_bytes"] >= 10 and orphan.exists()
    services.fetch_rows("UPDATE purges SET last_at = last_at - interval '9 days'")
    refused = run_joinery("doctor", "--sweep", "--json", env=services.env)
    states = {finding["name"]: finding["state"] for finding in json.loads(refused.stdout)["findings"]}
    assert refused.returncode == 1 and states["swept"] == states["purges"] == "wrong" and orphan.exists()
    services.fetch_rows("UPDATE purges SET last_at = now()")
    swept = _run_doctor(services, "--sweep")
    assert any(finding["name"] == "swept" for finding in swept["findings"])
    assert swept["storage"]["orphans"] == swept["storage"]["deleting"] == {"count": 0, "bytes": 0}
    assert org not in [one["org"] for one in swept["storage"]["batches"]]
    assert (
        not orphan.exists() and not (services.home / "objects" / "uploads" / org / "live" / f"{upload['id']}~").exists()
    )
    assert tenancy.api.call("POST", f"/v1/uploads/{upload['id']}/complete").status == 409


def _run_doctor(services: ServiceProcesses, *words: str) -> Any:
    done = run_joinery("doctor", *words, "--json", env=services.env)
    assert done.returncode == 0, done.stderr + done.stdout
    return json.loads(done.stdout)
