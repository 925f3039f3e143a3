"""Where a cluster's tenants lie and what its nodes carry. A node that does not answer is told as such; the others still are."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import psycopg
from psycopg.conninfo import make_conninfo

from adapters.postgres.cluster.coordinator import Coordinator, Member
from adapters.postgres.cluster.distributing import ANCHOR, Places, places

_LARGEST: Final = 10
_SEEN: Final = b"SET citus.override_table_visibility = off; SET statement_timeout = '60s'"
"""A node hides its shards from those who list its tables."""
_OWN: Final = """
WITH own AS (
    SELECT to_regclass(shard_name(s.logicalrelid, s.shardid)) AS shard
    FROM pg_dist_shard s JOIN pg_dist_placement p USING (shardid) JOIN pg_dist_local_group g USING (groupid)
    JOIN pg_dist_partition d ON d.logicalrelid = s.logicalrelid AND d.partmethod = 'h'
)
SELECT count(*), coalesce(sum(pg_total_relation_size(shard)), 0) FROM own WHERE shard IS NOT NULL
"""
_TENANTS: Final = """
WITH own AS (
    SELECT to_regclass(shard_name(s.logicalrelid, s.shardid)) AS shard
    FROM pg_dist_shard s JOIN pg_dist_placement p USING (shardid) JOIN pg_dist_local_group g USING (groupid)
    JOIN pg_dist_partition d ON d.logicalrelid = s.logicalrelid AND d.partmethod = 'h'
), shares AS (
    SELECT share.org, c.reltuples * share.part AS rows, pg_total_relation_size(c.oid) * share.part AS bytes
    FROM own JOIN pg_class c ON c.oid = own.shard AND c.relkind = 'r' AND c.reltuples > 0
    JOIN pg_stats st ON st.schemaname = 'public' AND st.tablename = c.relname AND st.attname = 'org'
    CROSS JOIN LATERAL unnest(st.most_common_vals::text::text[], st.most_common_freqs) AS share (org, part)
)
SELECT org, round(sum(rows))::bigint, round(sum(bytes))::bigint FROM shares GROUP BY org ORDER BY 3 DESC LIMIT %(limit)s
"""
"""By what ANALYZE last saw: counting would read everything. Who is too small to be among a shard's most common is left out."""
_JOBS: Final = "SELECT count(*) FROM {shard}"
_SHARDS: Final = """
SELECT p.groupid, array_agg(s.shardid ORDER BY s.shardid)
FROM pg_dist_shard s JOIN pg_dist_placement p USING (shardid)
WHERE s.logicalrelid = %(anchor)s::regclass GROUP BY p.groupid
"""
_HOMES: Final = """
SELECT p.groupid, count(*) FROM organisations o
JOIN pg_dist_placement p ON p.shardid = get_shard_id_for_distribution_column(%(anchor)s::regclass, o.id) GROUP BY p.groupid
"""
_MOVING: Final = """
SELECT table_name::text, shardid, sourcename || ':' || sourceport, targetname || ':' || targetport, source_shard_size,
    target_shard_size, status FROM get_rebalance_progress() WHERE progress <> 2 ORDER BY source_shard_size DESC
"""
_LEVEL: Final = "SELECT current_setting('wal_level')"


@dataclass(frozen=True, slots=True)
class Tenancy:
    """What an organisation has on a node, by the last statistics."""

    org: str
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """A node: with `error` it did not answer, and nothing but its name and its tenants' number is known."""

    member: Member
    tenants: int
    shards: int = 0
    bytes: int = 0
    open_jobs: int = 0
    largest: Sequence[Tenancy] = ()
    wal_level: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Moving:
    """A shard on its way, with what lies beside it."""

    table: str
    shard: int
    source: str
    target: str
    bytes: int
    copied: int
    phase: str


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """Everything that is told."""

    nodes: Sequence[NodeStatus]
    places: Places
    moving: Sequence[Moving] = field(default_factory=tuple)


async def status(found: Coordinator) -> ClusterStatus:
    """Look at the coordinator, then at every node by a connection of its own, side by side."""
    planned = await places(found)
    homes: Mapping[int, int] = {}
    shards: Mapping[int, Sequence[int]] = {}
    if ANCHOR in planned.done:
        homes = dict(await found.rows(_HOMES, anchor=ANCHOR)) if "organisations" in planned.done else {}
        shards = dict(await found.rows(_SHARDS, anchor=ANCHOR))
    members = await found.members()
    looks = (_look(found, member, homes.get(member.group, 0), shards.get(member.group, ())) for member in members)
    nodes = await asyncio.gather(*looks)
    return ClusterStatus(nodes, planned, await moving(found))


async def moving(found: Coordinator) -> Sequence[Moving]:
    """What is being copied to another node now, the largest first."""
    rows = await found.rows(_MOVING)
    return [
        Moving(table, shard, source, target, size or 0, copied or 0, phase or "waiting")
        for table, shard, source, target, size, copied, phase in rows
    ]


def address_of(found: Coordinator, member: Member) -> str:
    """How the node is reached from here: as the coordinator is, at its own host and port."""
    return found.conninfo if member.group == 0 else make_conninfo(found.conninfo, host=member.host, port=member.port)


async def _look(found: Coordinator, member: Member, tenants: int, shards: Sequence[int]) -> NodeStatus:
    try:
        async with await psycopg.AsyncConnection.connect(
            address_of(found, member), autocommit=True, connect_timeout=3, application_name="joinery cluster"
        ) as connection:
            return await _seen(connection, member, tenants, shards)
    except psycopg.Error as error:
        return NodeStatus(member, tenants, error=str(error).strip().splitlines()[0])


async def _seen(
    connection: psycopg.AsyncConnection[Any], member: Member, tenants: int, shards: Sequence[int]
) -> NodeStatus:
    await connection.execute(_SEEN)

    async def one(statement: str) -> tuple[Any, ...]:
        row: tuple[Any, ...] | None = await (await connection.execute(statement.encode())).fetchone()
        assert row is not None
        return row

    count, size = await one(_OWN)
    (level,) = await one(_LEVEL)
    jobs = [(await one(_JOBS.format(shard=f"public.{ANCHOR}_{int(shard)}")))[0] for shard in shards]
    largest = await (await connection.execute(_TENANTS, {"limit": _LARGEST})).fetchall()
    return NodeStatus(
        member=member,
        tenants=tenants,
        shards=count,
        bytes=int(size),
        open_jobs=sum(jobs),
        largest=[Tenancy(*row) for row in largest],
        wal_level=level,
    )
