"""`joinery cluster init`: on an empty database, with data, after an interruption, and after a migration."""

import asyncio

import pytest
from psycopg.conninfo import conninfo_to_dict

from adapters.postgres.cluster import (
    REFERENCE_TABLES,
    ClusterError,
    connect_to_coordinator,
    read_cluster_status,
    read_placement,
)
from adapters.postgres.dump import open_snapshot
from adapters.postgres.maintenance import PostgresMaintenance
from adapters.postgres.nodes.connections import connect
from adapters.postgres.nodes.pool import Pool
from adapters.postgres.schema_migrations import migrate
from entrypoints.cli.main import main
from tests.citus.table_contents import fill_tables, read_tables
from tests.support.citus import build_address, distribute_database, execute, list_nodes

pytestmark = pytest.mark.asyncio


async def _read_missing(address: str) -> tuple[str, ...]:
    async with connect_to_coordinator(address) as found:
        return (await read_placement(found)).missing


async def test_an_empty_database_is_migrated_and_distributed(empty: str) -> None:
    await migrate(empty)
    messages = await distribute_database(empty)
    assert [line for line in messages if "every node" in line] == [
        f"{name}: copied to every node" for name in REFERENCE_TABLES
    ]
    async with connect_to_coordinator(empty) as found:
        placed = await read_placement(found)
        assert placed.missing == () and {"jobs", "events", "products"} <= set(placed.placed_tables)
        assert "schema_migrations" in placed.local and not set(placed.local) & set(placed.placed_tables)
        groups = await found.execute(
            "SELECT DISTINCT colocation_id FROM citus_tables WHERE citus_table_type = 'distributed'"
        )
        assert len(groups) == 1, "an organisation's rows lie on one node"


async def test_data_is_distributed_without_loss(plain: str) -> None:
    await fill_tables(plain)
    before = await read_tables(plain)
    await distribute_database(plain)
    assert await read_tables(plain) == before
    left = await execute(
        plain, "SELECT count(*) FROM ONLY products", "SELECT pg_relation_size('products'), pg_relation_size('jobs')"
    )
    assert left == [(0, 0)], "the coordinator keeps no copy"
    async with connect_to_coordinator(plain) as found:
        seen = await read_cluster_status(found)
    assert sum(node.tenants for node in seen.nodes) == 3 and seen.nodes[0].tenants == 0
    assert sum(node.open_jobs for node in seen.nodes) == len(before["jobs"])


async def test_an_interrupted_initialisation_is_resumed(plain: str) -> None:
    await fill_tables(plain)
    before = await read_tables(plain)
    async with connect_to_coordinator(plain) as found:
        await found.execute("SELECT create_reference_table('plans')")
        await found.execute("SELECT create_reference_table('organisations')")
        await found.execute("SELECT create_distributed_table('jobs', 'org', colocate_with => 'none', shard_count => 4)")
    assert "plans" not in await _read_missing(plain) and "members" in await _read_missing(plain)
    await distribute_database(plain)
    assert await _read_missing(plain) == () and await read_tables(plain) == before


async def test_repeating_distributes_new_tables_only(plain: str) -> None:
    await distribute_database(plain)
    assert await migrate(plain) == [], "migrating goes on on a cluster"
    async with await connect(plain, "joinery migrate") as owner:
        await owner.execute(
            'CREATE TABLE novelties (org text COLLATE "C", livemode boolean, id text, PRIMARY KEY (org, livemode, id))'
        )
        await owner.execute("SELECT protect_tenant_table('novelties')")
    assert await _read_missing(plain) == ("novelties",)
    assert await distribute_database(plain) == ["novelties: distributed by organisation"]
    assert await distribute_database(plain) == []


async def test_processes_must_be_stopped(plain: str) -> None:
    pool = Pool(plain, size=1)
    async with pool.connect_to_coordinator() as link:
        await link.cursor.execute("SELECT 1")
        with pytest.raises(ClusterError, match="Stop all processes"):
            await distribute_database(plain)
    await pool.close()
    assert await distribute_database(plain)


async def test_a_worker_is_recognised(plain: str) -> None:
    host, port = (await list_nodes())[1]
    with pytest.raises(ClusterError, match="is a worker"):
        async with connect_to_coordinator(build_address(host, port, str(conninfo_to_dict(plain)["dbname"]))):
            pass


async def test_partitions_are_created_and_dropped(plain: str) -> None:
    await fill_tables(plain)
    await distribute_database(plain)
    pool = Pool(plain, size=1)
    maintenance = PostgresMaintenance(pool)
    async with pool.connect_as_owner() as link:
        cursor = await link.driver_connection.execute(
            "SELECT (now() + interval '20 days')::date, (now() + interval '400 days')::date"
        )
        soon, late = (await cursor.fetchall())[0]
        await link.driver_connection.execute("UPDATE request_logs SET created_at = now() + interval '21 days'")
    await maintenance.maintain_partitions(soon)
    [(made, rows)] = await execute(
        plain,
        f"SELECT to_regclass('request_logs_{soon:%Y%m%d}') IS NOT NULL, (SELECT count(*) FROM request_logs)",
    )
    assert made and rows == len((await read_tables(plain))["request_logs"]) > 0
    assert [count for (count,) in await execute(plain, "SELECT count(*) FROM request_logs_default")] == [0], (
        "strays went into their day"
    )
    await maintenance.maintain_partitions(late)
    assert (await read_tables(plain))["request_logs"] == []
    await maintenance.update_statistics()
    await pool.close()


async def test_request_logs_beyond_the_retention_are_purged(plain: str) -> None:
    await fill_tables(plain)
    await distribute_database(plain)
    pool = Pool(plain, size=1)
    async with pool.connect_as_owner() as link:
        cursor = await link.driver_connection.execute(
            "SELECT (now() + interval '20 days')::date, count(*) FROM request_logs"
        )
        later, rows = (await cursor.fetchall())[0]
    assert await PostgresMaintenance(pool).purge_request_logs(later) == rows > 0
    assert (await read_tables(plain))["request_logs"] == []
    await pool.close()


async def test_a_backup_contains_all_rows(plain: str) -> None:
    await fill_tables(plain)
    before = await read_tables(plain)
    await distribute_database(plain)
    async with open_snapshot(plain) as seen:
        for table in await seen.list_tables():
            async for _ in seen.copy_rows(table):
                pass
            assert seen.copied_row_count == len(before[table.name]), table.name


async def test_the_command_line(
    plain: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("JOINERY_DATABASE_URL", plain)
    for command in (["init", "--shards", "4"], ["init"], ["status"], ["status", "--json"]):
        assert await asyncio.to_thread(main, ["cluster", *command]) == 0, capsys.readouterr().err
    assert "All tables are already distributed" in capsys.readouterr().out
