"""Connections on which either side notices within seconds that the other one's machine is gone."""

from time import monotonic
from typing import Any, Final

import psycopg
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import TupleRow

from domain.kernel.clock import CLOCK

Connection = AsyncConnection[TupleRow]

_OURS: Final[dict[str, Any]] = {
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 11_000,
}
_THEIRS: Final = (
    "SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3; "
    "SET tcp_user_timeout = 11000"
)
"""The locks of a session outlive a machine that lost its power or network until the server gives the connection up: that
is two hours later by most systems' defaults. Sockets of this machine need none of this, and ignore it."""


async def set_clock(connection: Connection) -> None:
    """Take a reading of this server's clock for the process."""
    sent = monotonic()
    row = await (await connection.execute("SELECT clock_timestamp()")).fetchone()
    if row is not None:
        CLOCK.adjust(row[0], sent, monotonic())


async def connect(conninfo: str, application: str) -> Connection:
    """A connection in autocommit mode; what `conninfo` says goes before what is usual here. Raises psycopg.Error."""
    usual = _OURS | conninfo_to_dict(conninfo)
    connection = await psycopg.AsyncConnection.connect(**usual | {"application_name": application}, autocommit=True)
    try:
        await connection.execute(_THEIRS)
    except BaseException:
        await connection.close()
        raise
    return connection
