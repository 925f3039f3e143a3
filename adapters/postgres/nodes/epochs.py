"""Noticing that the database is another one by now: restored, copied or promoted, it may lack what was told of its logs.

A cluster's number, the database's and the timeline are the identity of a history of writes. It is kept beside the logs and
compared on every new connection, because none outlives a server that was replaced. Each node of a cluster has its own.
"""

import logging
from typing import Final

from psycopg import errors

from adapters.postgres.nodes.connecting import Connection
from adapters.postgres.nodes.placement import is_distributed

LOG: Final = logging.getLogger("joinery.changes")
_HERE: Final = """
SELECT kept.identity, here.identity FROM (
    SELECT (SELECT system_identifier FROM pg_control_system())
        || '.' || (SELECT oid FROM pg_database WHERE datname = current_database())
        || '.' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8) AS identity
) AS here LEFT JOIN log_server AS kept ON true
"""
_FIRST: Final = "INSERT INTO log_server (identity) VALUES (%s) ON CONFLICT DO NOTHING"
_NOTED: Final = "UPDATE log_server SET identity = %s WHERE identity = %s"
BEGIN_EPOCHS: Final = """
UPDATE event_logs SET epoch = 1 + floor(random() * 2147483646)::integer,
    began = CASE WHEN began = 0 THEN last ELSE least(began, last) END
"""
_OWN: Final = """
SELECT shard_name(s.logicalrelid, s.shardid) FROM pg_dist_shard s JOIN pg_dist_placement p USING (shardid)
JOIN pg_dist_local_group g USING (groupid) WHERE s.logicalrelid = 'event_logs'::regclass ORDER BY s.shardid
"""
_BY_NAME: Final = "SET LOCAL citus.enable_manual_changes_to_shards = on"


async def confirm_server(connection: Connection) -> None:
    """Begin an epoch in every log if this is another server than wrote them, before anything is read through it.

    The connection is the owner's. A database without logs, before its first migration, has none to begin.
    """
    try:
        kept, here = (await (await connection.execute(_HERE)).fetchone()) or (None, None)
    except errors.UndefinedTable:
        return
    if kept == here:
        return
    async with connection.transaction():
        if kept is None:
            await connection.execute(_FIRST, (here,))
        elif (await connection.execute(_NOTED, (here, kept))).rowcount:  # who comes second waits here until it is done
            await _begin_epochs(connection)
            LOG.warning("the database was restored, copied or promoted: every event log of it begins a new epoch")


async def _begin_epochs(connection: Connection) -> None:
    """In every log that lies here: on a cluster other nodes are what they were, and a log that has come from one is, too."""
    if not await is_distributed(connection, "event_logs"):
        await connection.execute(BEGIN_EPOCHS)
        return
    await connection.execute(_BY_NAME)
    for (name,) in await (await connection.execute(_OWN)).fetchall():
        await connection.execute(BEGIN_EPOCHS.replace("event_logs", name).encode())
