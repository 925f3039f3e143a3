"""What `joinery cluster` says where there is no cluster; and that nothing of a plain PostgreSQL needs one."""

import pytest

from adapters.postgres.cluster import ClusterError, coordinator
from adapters.postgres.nodes.connecting import is_distributed
from adapters.postgres.nodes.connecting import connect
from entrypoints.cli.main import main
from tests.postgres.databases import database_alone
from tests.support.postgres import database


@pytest.mark.asyncio
async def test_a_plain_postgresql_is_told_apart() -> None:
    with pytest.raises(ClusterError, match="is a plain PostgreSQL"):
        async with coordinator(await database()):
            pass
    async with await connect(await database(), "joinery") as connection:
        assert not await is_distributed(connection, "jobs")


@pytest.mark.parametrize("command", [["init"], ["status"], ["move", "org_1"], ["rebalance"]])
def test_every_command_says_what_to_do(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("JOINERY_DATABASE_URL", raising=False)
    assert main(["cluster", *command]) == 1
    assert "JOINERY_DATABASE_URL is not set" in capsys.readouterr().err


@pytest.mark.asyncio
async def test_init_leaves_a_plain_postgresql_as_it_is() -> None:
    async with database_alone("single", migrated=False) as address:
        with pytest.raises(ClusterError, match="docs/cluster.md"):
            async with coordinator(address):
                pass
        async with await connect(address, "joinery") as connection:
            cursor = await connection.execute(
                "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace"
            )
            assert await cursor.fetchone() == (0,)


@pytest.mark.parametrize("command", ["init", "status", "move", "rebalance"])
def test_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["cluster", command, "--help"])
    assert ended.value.code == 0 and command in capsys.readouterr().out
