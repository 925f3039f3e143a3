"""The connection to a cluster's coordinator, what it knows of its nodes, and the refusals of everything that is none."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, LiteralString

import psycopg

from adapters.postgres.errors import translated
from adapters.postgres.nodes.connecting import Connection, connect

_PATIENT: Final = (
    b"SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0; SET client_min_messages = warning"
)
_FOUND: Final = """
SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus'),
    EXISTS (SELECT FROM pg_available_extensions WHERE name = 'citus')
"""
_ITSELF: Final = "SELECT groupid = 0 FROM pg_dist_local_group"
_NODES: Final = """
SELECT groupid, nodename, nodeport, shouldhaveshards FROM pg_dist_node
WHERE noderole = 'primary' AND isactive ORDER BY groupid
"""


class ClusterError(Exception):
    """It cannot be done on this database; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Member:
    """A PostgreSQL server of the cluster: `group` is Citus' number of it, 0 the coordinator's; `holds` whether it is given shards."""

    group: int
    host: str
    port: int
    holds: bool

    @property
    def name(self) -> str:
        """How people name it."""
        return f"{self.host}:{self.port}"


class Coordinator:
    """The coordinator, as the tables' owner. What the extension refuses leaves as ClusterError, in its own words."""

    def __init__(self, connection: Connection, conninfo: str) -> None:
        self.connection, self.conninfo = connection, conninfo

    async def rows(self, statement: LiteralString, **values: Any) -> list[tuple[Any, ...]]:
        """Every row. Raises ClusterError."""
        try:
            cursor = await self.connection.execute(statement, values)
            return await cursor.fetchall() if cursor.description else []
        except psycopg.Error as error:
            raise refusal(error) from error

    async def value(self, statement: LiteralString, **values: Any) -> Any:
        """The first column of the first row, or None. Raises ClusterError."""
        rows = await self.rows(statement, **values)
        return rows[0][0] if rows else None

    async def members(self) -> Sequence[Member]:
        """Every server, the coordinator first."""
        return [Member(*row) for row in await self.rows(_NODES)]


def refusal(error: psycopg.Error) -> ClusterError:
    """What the server said, in a sentence or two."""
    told = [part for part in (error.diag.message_primary, error.diag.message_detail, error.diag.message_hint) if part]
    return ClusterError(" ".join(told) or str(error).strip())


@asynccontextmanager
async def coordinator(conninfo: str) -> AsyncIterator[Coordinator]:
    """A connection to the coordinator that this address must be of. Raises ClusterError, Unavailable."""
    with translated():
        async with await connect(conninfo, "joinery cluster") as connection:
            await connection.execute(_PATIENT)
            found = Coordinator(connection, conninfo)
            await _must_be_one(found)
            yield found


async def _must_be_one(found: Coordinator) -> None:
    [(there, at_hand)] = await found.rows(_FOUND)
    where = found.connection.info
    database = f"the database {where.dbname} at {where.host}:{where.port}"
    if not there:
        missing = (
            "run CREATE EXTENSION citus in it, on every node, and add the nodes"
            if at_hand
            else "its server has no Citus: install it and put citus into shared_preload_libraries"
        )
        raise ClusterError(
            f"This needs a Citus coordinator, and {database} is a plain PostgreSQL: {missing} (docs/cluster.md). "
            "Joinery runs on a plain PostgreSQL without any of this."
        )
    if not await found.value(_ITSELF):
        raise ClusterError(f"This needs the coordinator, and {database} is a worker of the cluster.")


async def must_have_workers(found: Coordinator) -> Sequence[Member]:
    """The servers that are given shards. Raises ClusterError."""
    members = await found.members()
    if not [member for member in members if member.group == 0]:
        raise ClusterError(
            "The coordinator does not know its own address: SELECT citus_set_coordinator_host('its host name', its port)."
        )
    holding = [member for member in members if member.holds]
    if not holding:
        raise ClusterError("No node takes shards: SELECT citus_add_node('its host name', its port) for each, first.")
    return holding
