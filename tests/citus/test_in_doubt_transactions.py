"""In-doubt transactions: readers wait for their log, and other logs are unaffected."""

import asyncio

import psycopg
from psycopg.conninfo import conninfo_to_dict

from domain.events.ports import EventLog
from domain.kernel.ids import new_id
from entrypoints.container import open_dependencies
from entrypoints.dependencies import Dependencies
from entrypoints.settings import read_settings
from ports.unit_of_work import UnitOfWork
from tests.citus.placements import find_node
from tests.flows.service_processes import ServiceProcesses, Tenancy
from tests.support import builders
from tests.support.citus import build_address

_SHARD = (
    "SELECT shard_name(%(table)s::regclass, get_shard_id_for_distribution_column(%(table)s::regclass, %(org)s::text))"
)


async def _write_event(container: Dependencies, tenancy: Tenancy) -> None:
    async with container[UnitOfWork].begin(tenancy.tenant, builders.CALL) as tx:
        await tx[EventLog].append([builders.event(new_id("src"))])


def _read_subjects(tenancy: Tenancy) -> list[str]:
    return [event["subject"] for event in tenancy.api.get("/v1/changes", limit="1000")["data"]]


def test_an_in_doubt_transaction_blocks_only_its_own_log(
    services: ServiceProcesses, tenants: dict[str, list[Tenancy]]
) -> None:
    own, neighbour = next(iter(tenants.values()))
    host, port = find_node(services, own.tenant.org).split(":")
    node = build_address(host, int(port), str(conninfo_to_dict(services.database_url)["dbname"]))
    names = {table: services.fetch_value(_SHARD, table=table, org=own.tenant.org) for table in ("event_logs", "events")}

    async def work() -> None:
        async with open_dependencies(read_settings(services.env)) as container:
            await _write_event(container, own)
            before = await asyncio.to_thread(_read_subjects, own)
            _leave_in_doubt(node, names, own.tenant.org)
            waiting = asyncio.create_task(_write_event(container, own))
            try:
                for _ in range(10):
                    await asyncio.sleep(0.2)
                    assert await asyncio.to_thread(_read_subjects, own) == before and not waiting.done()
                await _write_event(container, neighbour)
            finally:
                _resolve(node)
            await waiting
            after = await asyncio.to_thread(_read_subjects, own)
            assert after[: len(before)] == before
            assert after[len(before)] == before[-1] and len(after) == len(before) + 2, "first what was in doubt"

    asyncio.run(work())
    positions = services.fetch_rows(
        "SELECT array_agg(position ORDER BY position), count(*) FROM events WHERE org = %(org)s AND NOT livemode",
        org=own.tenant.org,
    )
    taken, count = positions[0]
    assert taken == list(range(taken[0], taken[0] + count)), "positions have no gap"


def _leave_in_doubt(node: str, names: dict[str, str], org: str) -> None:
    """Append a copy of the last event by a prepared transaction without a coordinator."""
    logs, events = names["event_logs"], names["events"]
    with psycopg.connect(node) as connection:
        connection.execute("SET LOCAL citus.enable_manual_changes_to_shards = on")
        connection.execute(f"UPDATE {logs} SET last = last + 1 WHERE org = %s AND NOT livemode".encode(), (org,))
        connection.execute(
            f"""INSERT INTO {events} SELECT (jsonb_populate_record(e, jsonb_build_object('position', e.position + 1))).*
            FROM {events} e WHERE org = %s AND NOT livemode ORDER BY position DESC LIMIT 1""".encode(),
            (org,),
        )
        connection.execute("PREPARE TRANSACTION 'left in doubt'")


def _resolve(node: str) -> None:
    with psycopg.connect(node, autocommit=True) as connection:
        connection.execute("COMMIT PREPARED 'left in doubt'")
