"""Use of the connection pool: no request holds one connection while it waits for another, and none is leaked."""

import asyncio
from pathlib import Path

import psycopg
import pytest

from adapters.postgres import platform
from adapters.postgres.nodes.pool import Pool
from domain.kernel.errors import Unavailable
from domain.kernel.tenancy import Tenant
from tests.postgres.databases import create_temporary_database
from tests.support.postgres import database
from tests.tenancy.application import serve_application

pytestmark = pytest.mark.asyncio


@pytest.mark.parametrize("path", ["/v1/changes?cursor=now", "/v1/changes", "/v1/changes/recent", "/v1/stream"])
async def test_many_readers_of_the_log_share_few_connections(tmp_path: Path, path: str) -> None:
    async with serve_application(tmp_path, JOINERY_POOL_SIZE="2") as application:
        organisation = await application.create_organisation()
        client = await application.create_client(Tenant(organisation.id, True))
        async with asyncio.timeout(20):
            answers = await asyncio.gather(*(client.get(path) for _ in range(30)))
        assert {answer.status for answer in answers} == {200}


async def test_requests_without_a_connection_leave_none_open() -> None:
    async with (
        create_temporary_database("refused") as address,
        await psycopg.AsyncConnection.connect(address, autocommit=True) as owner,
    ):
        await owner.execute("ALTER TABLE log_server RENAME COLUMN identity TO unknown")
        pool = Pool(address)
        for _ in range(3):
            with pytest.raises(psycopg.errors.UndefinedColumn):
                async with pool.connect_to_tenant(Tenant("org_1", True)):
                    pytest.fail("it was let in")
        async with asyncio.timeout(5):
            while await _count_connections(owner):
                await asyncio.sleep(0.02)
        await pool.close()


async def _count_connections(owner: psycopg.AsyncConnection) -> int:
    sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    row = await (await owner.execute(sql)).fetchone()
    assert row is not None
    return int(row[0])


async def test_a_slow_workload_query_is_not_an_unreachable_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "_TIMEOUT", "SET LOCAL statement_timeout = '10ms'")
    monkeypatch.setitem(platform.SQL, "find_tenant_of_source", "SELECT pg_sleep(5), %(id)s::text")
    pool = Pool(await database(), size=1)
    try:
        with pytest.raises(Unavailable, match="longer than three seconds"):
            await platform.PostgresWorkload(pool).find_tenant_of_source("src_1")
    finally:
        await pool.close()
