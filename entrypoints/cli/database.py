"""Commands for the database: migrations, SQL of lists, and clusters of several servers."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Annotated, Any

from cyclopts import Parameter

from adapters.postgres import cluster
from adapters.postgres import migrate as migrations
from adapters.postgres.catalogue_query import FILTERS, list_sql
from adapters.postgres.cluster import ClusterError, ClusterStatus, Coordinator, coordinator
from adapters.postgres.stores import page_names, rendered
from adapters.postgres.unit_of_work import TABLES
from domain.kernel.paging import PageRequest
from entrypoints import settings
from entrypoints.cli.store import DEFAULT, Store, attributes
from entrypoints.errors import CommandError, SettingsError


async def migrate(*, plan: bool = False, store: Store = DEFAULT) -> int:
    """Migrate the database to this release's schema.

    Args:
        plan: list the pending migrations without applying them
    """
    url = settings.owner_url(store.environment())
    try:
        names = await (migrations.list_pending if plan else migrations.migrate)(url)
        later = (await migrations.read_compatibility(url)).unknown()
    except migrations.MigrationError as error:
        raise CommandError(str(error)) from error
    newer = f" Its schema is that of a later, compatible release ({later[-1]})." if later else ""
    sentence = f"The database is up to date.{newer}"
    if names:
        sentence = f"{'Pending: ' if plan else 'Applied '}{', '.join(names)}."
    return store.answer({"pending" if plan else "applied": names, "later": later}, sentence)


@asynccontextmanager
async def _coordinator(store: Store) -> AsyncIterator[Coordinator]:
    url = store.environment().get("JOINERY_DATABASE_URL")
    if not url:
        raise SettingsError("JOINERY_DATABASE_URL is not set. Set it to the URL of the cluster's coordinator.")
    try:
        async with coordinator(url) as cluster_coordinator:
            yield cluster_coordinator
    except (ClusterError, migrations.MigrationError) as error:
        raise CommandError(str(error)) from error


def _report(line: str) -> None:
    """Print progress to standard error, so that the output can be piped."""
    print(line, file=sys.stderr, flush=True)


async def init(*, shards: int = 32, store: Store = DEFAULT) -> int:
    """Distribute the tables; a repeated run completes it.

    Args:
        shards: permanent number of parts of the tenants' tables, and the maximum number of nodes. Each adds about 300
            tables (partitions by day) to the system catalogue of every node
    """
    async with _coordinator(store) as cluster_coordinator:
        applied = await migrations.migrate(cluster_coordinator.conninfo)
        result = await cluster.distribute(cluster_coordinator, shards, _report)
    answer = {"applied": applied, "reference": result.reference, "by_org": result.by_org, "local": result.local}
    count = len(result.missing)
    sentence = f"Distributed {count} tables." if count else "All tables are already distributed."
    return store.answer(answer, sentence)


async def show_status(*, store: Store = DEFAULT) -> int:
    """Show what each node holds, and current moves."""
    async with _coordinator(store) as cluster_coordinator:
        status = await cluster.status(cluster_coordinator)
    return store.answer(_status_json(status), *_format_status(status))


async def move(org: str, /, *, to: str | None = None, store: Store = DEFAULT) -> int:
    """Move an organisation's shard to another node without downtime.

    Args:
        org: the organisation's ID
        to: HOST:PORT of the target (default: the node with the least data)
    """
    async with _coordinator(store) as cluster_coordinator:
        moved = await cluster.move(cluster_coordinator, org, to, _report)
    return store.answer(asdict(moved), f"{moved.org} is now at {moved.target}.")


async def rebalance(*, store: Store = DEFAULT) -> int:
    """Distribute the shards evenly; continues in the background."""
    async with _coordinator(store) as cluster_coordinator:
        count = await cluster.rebalance(cluster_coordinator, _report)
    return store.answer(
        {"moves": count}, f"Moved {count} shards." if count else "The shards are already distributed evenly."
    )


def _status_json(status: ClusterStatus) -> dict[str, Any]:
    nodes = []
    for node in status.nodes:
        described = asdict(node)
        del described["member"]
        member = {"node": node.member.name, "coordinator": node.member.group == 0, "takes_shards": node.member.holds}
        nodes.append({**member, "alive": node.error is None, **described})
    return {
        **attributes(status.places, "missing", "local"),
        "nodes": nodes,
        "distributed": status.places.done,
        "moving": [asdict(transfer) for transfer in status.moving],
    }


def _format_status(status: ClusterStatus) -> list[str]:
    lines = [f"{'node':<24} {'state':<12} {'shards':>7} {'MiB':>10} {'tenants':>8} {'open jobs':>10}"]
    for node in status.nodes:
        state = "alive" if node.error is None else "UNREACHABLE"
        role = "" if node.member.group else "  (coordinator)"
        lines.append(
            f"{node.member.name:<24} {state:<12} {node.shards:>7} {node.bytes / 2**20:>10.1f} {node.tenants:>8} "
            f"{node.open_jobs:>10}{role}"
        )
    for node in status.nodes:
        if node.error is not None:
            lines.append(f"\n{node.member.name}: {node.error}")
        if node.largest:
            lines.append(f"\nlargest at {node.member.name}, by the latest statistics")
            lines += [f"  {one.org:<32} {one.rows:>12} rows {one.bytes / 2**20:>10.1f} MiB" for one in node.largest]
    for one in status.moving:
        lines.append(
            f"\nmoving {one.table} ({one.shard}) from {one.source} to {one.target}: {one.copied} of {one.bytes} bytes, {one.phase}"
        )
    if status.places.missing:
        lines.append(f"\nnot distributed yet: {', '.join(status.places.missing)}; run `joinery cluster init`")
    return lines


def sql(
    name: str | None = None,
    /,
    *,
    filters: Annotated[tuple[str, ...], Parameter("--filter")] = (),
    limit: int = 20,
    after: bool = False,
    before: bool = False,
) -> int:
    """Print the SQL statement of a list, or the names of all lists.

    Args:
        name: products, offers or a table; without one, all names
        filters: include this filter; repeatable
        limit: items on a page
        after: the page after a cursor
        before: the page before a cursor
    """
    tables = {table.name: table for table in TABLES}
    filters_by_list = {name: table.stored for name, table in tables.items()} | FILTERS
    if name is None:
        for one in sorted(filters_by_list):
            print(f"{one:<22} filters: {', '.join(sorted(filters_by_list[one]))}")
        return 0
    if name not in filters_by_list:
        raise CommandError(f"There is no list {name}. Print all names with `joinery sql`.")
    if unknown := set(filters) - set(filters_by_list[name]):
        raise CommandError(f"The list {name} has no filter {', '.join(sorted(unknown))}.")
    request = PageRequest(limit, "…" if after or before else None, backwards=before)
    if name in FILTERS:
        words = ["word0"] if "q" in filters else []
        print(list_sql(name, [*filters, *words], request))
    else:
        print(rendered(tables[name].list, page_names(request).union(filters), request.limit + 1))
    return 0
