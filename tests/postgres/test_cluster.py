"""`joinery cluster` without a cluster, and plain PostgreSQL without cluster features."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from adapters.postgres.cluster import ClusterError, connect_to_coordinator
from adapters.postgres.nodes.connections import connect, is_distributed
from adapters.postgres.nodes.router import COORDINATOR, Node, Placement
from entrypoints.cli.main import main
from tests.postgres.databases import create_temporary_database
from tests.support.postgres import database


@pytest.mark.asyncio
async def test_a_plain_postgresql_is_recognised() -> None:
    with pytest.raises(ClusterError, match="is a plain PostgreSQL"):
        async with connect_to_coordinator(await database()):
            pass
    async with await connect(await database(), "joinery") as connection:
        assert not await is_distributed(connection, "jobs")


@pytest.mark.parametrize("command", [["init"], ["status"], ["move", "org_1"], ["rebalance"]])
def test_every_command_states_the_next_step(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("JOINERY_DATABASE_URL", raising=False)
    assert main(["cluster", *command]) == 1
    assert "JOINERY_DATABASE_URL is not set" in capsys.readouterr().err


@pytest.mark.asyncio
async def test_init_does_not_change_a_plain_postgresql() -> None:
    async with create_temporary_database("single", migrated=False) as address:
        with pytest.raises(ClusterError, match="docs/cluster.md"):
            async with connect_to_coordinator(address):
                pass
        async with await connect(address, "joinery") as connection:
            cursor = await connection.execute(
                "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace"
            )
            assert await cursor.fetchone() == (0,)


@pytest.mark.parametrize("command", ["init", "status", "move", "rebalance"])
def test_help_is_printed(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cluster", command, "--help"]) == 0
    assert command in capsys.readouterr().out


@pytest.mark.asyncio
async def test_placements_are_cached_while_the_nodes_are_read_again() -> None:
    reading, answered = asyncio.Event(), asyncio.Event()
    answered.set()

    async def query(statement: str, _: Mapping[str, Any]) -> Sequence[tuple[Any, ...]]:
        if "pg_extension" in statement:
            reading.set()
            await answered.wait()
        if "get_shard_id" in statement:
            return [("org_1", 1)]
        return [(0, "a", 1), (1, "b", 2)] if "pg_dist_node" in statement else [(True,)]

    placement = Placement(Node(COORDINATOR, "host=a port=1"), query)
    await placement.list_nodes()
    reading.clear()
    answered.clear()
    again = asyncio.create_task(placement.list_nodes())
    await reading.wait()
    node_by_org = await placement.find_nodes(["org_1"])
    answered.set()
    await again
    assert node_by_org["org_1"].name == "b:2"
