"""`joinery cluster`: one PostgreSQL becomes several, and tenants move between them."""

import argparse
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Any

from adapters.postgres import cluster
from adapters.postgres.cluster import ClusterError, ClusterStatus, Coordinator, coordinator
from adapters.postgres.migrate import MigrationError, migrate
from entrypoints.cli.errors import CommandError
from entrypoints.cli.orgs import answered, environment
from entrypoints.settings import SettingsError


@asynccontextmanager
async def _coordinator(options: argparse.Namespace) -> AsyncIterator[Coordinator]:
    url = environment(options).get("JOINERY_DATABASE_URL")
    if not url:
        raise SettingsError("JOINERY_DATABASE_URL is not set: name the cluster's coordinator.")
    try:
        async with coordinator(url) as found:
            yield found
    except (ClusterError, MigrationError) as error:
        raise CommandError(str(error)) from error


def _tell(line: str) -> None:
    """Progress goes beside the answer, so that this can be piped."""
    print(line, file=sys.stderr, flush=True)


async def init(options: argparse.Namespace) -> int:
    """`joinery cluster init`."""
    async with _coordinator(options) as found:
        applied = await migrate(found.conninfo)
        done = await cluster.distribute(found, options.shards, _tell)
    answer = {"applied": applied, "reference": done.reference, "by_org": done.by_org, "local": done.local}
    count = len(done.missing)
    sentence = f"Gave {count} tables their place." if count else "Every table has its place already."
    return answered(options, answer, sentence)


async def tell(options: argparse.Namespace) -> int:
    """`joinery cluster status`."""
    async with _coordinator(options) as found:
        seen = await cluster.status(found)
    return answered(options, _as_json(seen), "\n".join(_lines(seen)))


async def move(options: argparse.Namespace) -> int:
    """`joinery cluster move`."""
    async with _coordinator(options) as found:
        moved = await cluster.move(found, options.org, options.to, _tell)
    return answered(options, asdict(moved), f"{moved.org} is at {moved.target} now.")


async def rebalance(options: argparse.Namespace) -> int:
    """`joinery cluster rebalance`."""
    async with _coordinator(options) as found:
        count = await cluster.rebalance(found, _tell)
    return answered(options, {"moves": count}, f"Moved {count} times." if count else "The shards are spread evenly.")


def _as_json(seen: ClusterStatus) -> dict[str, Any]:
    nodes = [
        {
            "node": node.member.name,
            "coordinator": node.member.group == 0,
            "takes_shards": node.member.holds,
            "alive": node.error is None,
        }
        | {name: value for name, value in asdict(node).items() if name != "member"}
        for node in seen.nodes
    ]
    return {
        "nodes": nodes,
        "distributed": seen.places.done,
        "missing": seen.places.missing,
        "local": seen.places.local,
        "moving": [asdict(one) for one in seen.moving],
    }


def _lines(seen: ClusterStatus) -> list[str]:
    lines = [f"{'node':<24} {'state':<12} {'shards':>7} {'MiB':>10} {'tenants':>8} {'open jobs':>10}"]
    for node in seen.nodes:
        state = "alive" if node.error is None else "NO ANSWER"
        role = "" if node.member.group else "  (coordinator)"
        lines.append(
            f"{node.member.name:<24} {state:<12} {node.shards:>7} {node.bytes / 2**20:>10.1f} {node.tenants:>8} "
            f"{node.open_jobs:>10}{role}"
        )
    for node in seen.nodes:
        if node.error is not None:
            lines.append(f"\n{node.member.name}: {node.error}")
        if node.largest:
            lines.append(f"\nlargest at {node.member.name}, by the last statistics")
            lines += [f"  {one.org:<32} {one.rows:>12} rows {one.bytes / 2**20:>10.1f} MiB" for one in node.largest]
    for one in seen.moving:
        lines.append(
            f"\nmoving {one.table} ({one.shard}) from {one.source} to {one.target}: {one.copied} of {one.bytes} bytes, {one.phase}"
        )
    if seen.places.missing:
        lines.append(f"\nnot distributed yet: {', '.join(seen.places.missing)}; `joinery cluster init` does that")
    return lines
