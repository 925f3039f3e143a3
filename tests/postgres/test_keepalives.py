"""TCP keepalives: both sides of a connection detect an unreachable peer."""

import pytest

from adapters.postgres.nodes.connections import connect
from tests.support.postgres import MACHINES_OWN, database, is_available

pytestmark = pytest.mark.asyncio
SETTINGS = ("tcp_keepalives_idle", "tcp_keepalives_interval", "tcp_keepalives_count", "tcp_user_timeout")


async def test_the_client_sends_keepalives() -> None:
    async with await connect(await database(), "a test") as connection:
        parameters = connection.info.get_parameters()
        cursor = await connection.execute("SHOW application_name")
        assert await cursor.fetchone() == ("a test",)
    assert (parameters["keepalives_idle"], parameters["tcp_user_timeout"], parameters["connect_timeout"]) == (
        "5",
        "11000",
        "5",
    )


async def test_settings_of_the_address_take_precedence() -> None:
    address = await database()
    joint = "&" if "?" in address else "?"
    async with await connect(f"{address}{joint}keepalives_idle=60", "a test") as connection:
        assert connection.info.get_parameters()["keepalives_idle"] == "60"


async def test_the_server_sends_keepalives() -> None:
    if not await is_available():
        pytest.skip("no server at hand over TCP")
    async with await connect(MACHINES_OWN, "a test") as connection:
        if connection.info.host.startswith("/"):
            pytest.skip("the server at hand is reached by a socket of this machine")
        shown = [await (await connection.execute(f"SHOW {name}".encode())).fetchone() for name in SETTINGS]
    assert shown == [("5",), ("2",), ("3",), ("11000",)]
