"""Moving an organisation to another node while it is written and followed, and spreading everything evenly again.

Logical replication carries the rows, so that writers wait only for the last moment. `events` and `request_logs` have no key
by which a change could be told to the copy; but nothing is ever changed in them, and what maintenance deletes by age it deletes at its
next turn. So replication is forced where Citus would ask for a key.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, LiteralString

from adapters.postgres.cluster.coordinator import ClusterError, Coordinator, Member, coordinator
from adapters.postgres.cluster.distributing import ANCHOR
from adapters.postgres.cluster.status import ClusterStatus, NodeStatus, moving, status

_PAUSE: Final = 2.0
_SHARD: Final = "SELECT get_shard_id_for_distribution_column(%(anchor)s::regclass, %(org)s::text)"
_PLACED: Final = "SELECT groupid FROM pg_dist_placement WHERE shardid = %(shard)s"
_NEIGHBOURS: Final = """
SELECT count(*) FROM organisations o
WHERE o.id <> %(org)s AND get_shard_id_for_distribution_column(%(anchor)s::regclass, o.id) = %(shard)s
"""
_ISOLATE: Final = "SELECT isolate_tenant_to_new_shard(%(anchor)s::regclass, %(org)s::text, 'CASCADE', 'block_writes')"
_MOVE: Final = (
    "SELECT citus_move_shard_placement(%(shard)s::bigint, %(from_host)s::text, %(from_port)s::integer, %(to_host)s::text, "
    "%(to_port)s::integer, 'force_logical')"
)
_RUNNING: Final = """
SELECT job_id FROM pg_dist_background_job
WHERE job_type = 'rebalance' AND state IN ('scheduled', 'running', 'failing', 'cancelling') ORDER BY job_id DESC LIMIT 1
"""
_START: Final = "SELECT citus_rebalance_start(shard_transfer_mode => 'force_logical')"
_JOB: Final = """
SELECT j.state::text, (SELECT count(*) FROM pg_dist_background_task t WHERE t.job_id = j.job_id),
    (SELECT count(*) FROM pg_dist_background_task t WHERE t.job_id = j.job_id AND t.status = 'done'),
    (SELECT string_agg(t.message, ' ') FROM pg_dist_background_task t WHERE t.job_id = j.job_id AND t.status IN ('error', 'unscheduled'))
FROM pg_dist_background_job j WHERE j.job_id = %(job)s
"""

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Moved:
    """What `move` did: `isolated` whether the organisation was given a shard of its own first."""

    org: str
    source: str
    target: str
    shard: int
    isolated: bool


async def move(found: Coordinator, org: str, to: str | None, tell: Tell, *, alone: bool = False) -> Moved:
    """Move the organisation's shard to the node `to` (host:port; else to the one that holds least). Raises ClusterError.

    Whoever shares the shard goes along, unless it is to move `alone`: then it is given a shard of its own first. While that
    is cut off, all who share it wait to write (Citus 13 cannot carry an update over into a part of the same node).
    """
    seen = await status(found)
    if ANCHOR not in seen.places.done:
        raise ClusterError("The tables are not distributed; `joinery cluster init` does that.")
    shard = await found.value(_SHARD, anchor=ANCHOR, org=org)
    source = await _home(found, seen, shard)
    target = _target(seen, source, to)
    neighbours = await found.value(_NEIGHBOURS, anchor=ANCHOR, org=org, shard=shard)
    _must_replicate([source, target])
    if neighbours and not alone:
        tell(f"{neighbours} others share its shard {shard}, and go along (with --alone they stay).")
    elif neighbours:
        tell(
            f"It gets a shard of its own first; the {neighbours} others of shard {shard} wait to write meanwhile, and stay."
        )
        shard = await _watched(found, _ISOLATE, tell, anchor=ANCHOR, org=org)
    tell(f"{org}: shard {shard}, with what lies beside it, from {source.member.name} to {target.member.name}.")
    ends = _ends("from", source.member) | _ends("to", target.member)
    await _watched(found, _MOVE, tell, shard=shard, **ends)
    return Moved(org, source.member.name, target.member.name, shard, alone and neighbours > 0)


async def rebalance(found: Coordinator, tell: Tell) -> int:
    """Spread the shards evenly, or go on watching the one that runs; answers how many were moved. Raises ClusterError.

    The coordinator's background worker moves them: when this process ends, it goes on.
    """
    _must_replicate([node for node in (await status(found)).nodes if node.member.holds])
    job = await found.value(_RUNNING)
    if job is not None:
        tell(f"The rebalance {job} is under way already.")
    else:
        job = await found.value(_START)
    if job is None:
        return 0
    while True:
        state, tasks, done, message = (await found.rows(_JOB, job=job))[0]
        if state == "finished":
            return int(done)
        if state in ("failed", "cancelled"):
            raise ClusterError(f"The rebalance {job} {state} after {done} of {tasks} moves. {message or ''}".strip())
        tell(f"{done} of {tasks} moved" + "".join(f"; {told}" for told in await _progress(found)))
        await asyncio.sleep(_PAUSE)


async def _home(found: Coordinator, seen: ClusterStatus, shard: int) -> NodeStatus:
    group = await found.value(_PLACED, shard=shard)
    return next(node for node in seen.nodes if node.member.group == group)


def _target(seen: ClusterStatus, source: NodeStatus, to: str | None) -> NodeStatus:
    """The node named, or of the others the one with the fewest bytes."""
    others = [node for node in seen.nodes if node.member.holds and node.member != source.member]
    names = ", ".join(node.member.name for node in others) or "none"
    if to is not None:
        if to == source.member.name:
            raise ClusterError(f"It is at {to} already.")
        others = [node for node in others if node.member.name == to]
        if not others:
            raise ClusterError(f"{to} is no other node that takes shards; there are: {names}.")
    alive = [node for node in others if node.error is None]
    if not alive:
        raise ClusterError(f"There is no other node that takes shards and answers; there are: {names}.")
    return min(alive, key=lambda node: node.bytes)


def _must_replicate(nodes: Sequence[NodeStatus]) -> None:
    """Whether rows can be carried while they are written."""
    for node in nodes:
        name = node.member.name
        if node.error is not None:
            raise ClusterError(f"{name} does not answer: {node.error}")
        if node.wal_level != "logical":
            raise ClusterError(
                f"{name} has wal_level = {node.wal_level}; moving while it is written needs `wal_level = logical` on every node, "
                "and a restart of it."
            )


def _ends(which: str, member: Member) -> dict[str, Any]:
    return {f"{which}_host": member.host, f"{which}_port": member.port}


async def _watched(found: Coordinator, statement: LiteralString, tell: Tell, **values: Any) -> Any:
    """Run a long statement, and tell how far it is meanwhile, over a connection beside it."""
    async with coordinator(found.conninfo) as beside, _alongside(lambda: _progress(beside), tell):
        return await found.value(statement, **values)


async def _progress(found: Coordinator) -> Sequence[str]:
    """One line for all that is on its way now."""
    under_way = await moving(found)
    if not under_way:
        return []
    total, copied = sum(one.bytes for one in under_way), sum(one.copied for one in under_way)
    phases = sorted({one.phase.lower() for one in under_way})
    return [f"{copied / 2**20:.1f} of {total / 2**20:.1f} MiB, {', '.join(phases)}"]


@asynccontextmanager
async def _alongside(look: Callable[[], Awaitable[Sequence[str]]], tell: Tell) -> AsyncIterator[None]:
    async def go_on() -> None:
        while True:
            await asyncio.sleep(_PAUSE)
            for line in await look():
                tell(line)

    task = asyncio.create_task(go_on(), name="telling how far a move is")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
