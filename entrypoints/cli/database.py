"""The database: its schema, the statements of lists, and several servers that share the tenants."""

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
    """Bring the database to this release's schema.

    Args:
        plan: list the pending migrations without applying them
    """
    url = settings.owner_url(store.environment())
    try:
        names = await (migrations.list_pending if plan else migrations.migrate)(url)
        later = (await migrations.read_compatibility(url)).unknown()
    except migrations.MigrationError as error:
        raise CommandError(str(error)) from error
    newer = f" It has the schema of a later, compatible release ({later[-1]})." if later else ""
    sentence = f"The database is up to date.{newer}"
    if names:
        sentence = f"{'Pending: ' if plan else 'Applied '}{', '.join(names)}."
    return store.answer({"pending" if plan else "applied": names, "later": later}, sentence)


@asynccontextmanager
async def _coordinator(store: Store) -> AsyncIterator[Coordinator]:
    url = store.environment().get("JOINERY_DATABASE_URL")
    if not url:
        raise SettingsError("JOINERY_DATABASE_URL is not set: name the cluster's coordinator.")
    try:
        async with coordinator(url) as found:
            yield found
    except (ClusterError, migrations.MigrationError) as error:
        raise CommandError(str(error)) from error


def _report(line: str) -> None:
    """Print progress beside the answer, so that this can be piped."""
    print(line, file=sys.stderr, flush=True)


async def init(*, shards: int = 32, store: Store = DEFAULT) -> int:
    """Give every table its place; run again, it does what is left.

    Args:
        shards: parts that the tenants' tables are cut into, for good: as many nodes can share them. Each costs every
            node's catalogue some 300 tables, for days are tables
    """
    async with _coordinator(store) as found:
        applied = await migrations.migrate(found.conninfo)
        done = await cluster.distribute(found, shards, _report)
    answer = {"applied": applied, "reference": done.reference, "by_org": done.by_org, "local": done.local}
    count = len(done.missing)
    sentence = f"Gave {count} tables their place." if count else "Every table has its place already."
    return store.answer(answer, sentence)


async def show_status(*, store: Store = DEFAULT) -> int:
    """Tell what each node holds, and what is being moved."""
    async with _coordinator(store) as found:
        seen = await cluster.status(found)
    return store.answer(_as_json(seen), *_lines(seen))


async def move(org: str, /, *, to: str | None = None, store: Store = DEFAULT) -> int:
    """Move an organisation's shard to another node while it is used.

    Args:
        org: the organisation's id
        to: HOST:PORT, where to (default: the node that holds least)
    """
    async with _coordinator(store) as found:
        moved = await cluster.move(found, org, to, _report)
    return store.answer(asdict(moved), f"{moved.org} is at {moved.target} now.")


async def rebalance(*, store: Store = DEFAULT) -> int:
    """Spread the shards evenly; it goes on when this command is ended."""
    async with _coordinator(store) as found:
        count = await cluster.rebalance(found, _report)
    return store.answer({"moves": count}, f"Moved {count} times." if count else "The shards are spread evenly.")


def _as_json(seen: ClusterStatus) -> dict[str, Any]:
    nodes = []
    for node in seen.nodes:
        described = asdict(node)
        del described["member"]
        member = {"node": node.member.name, "coordinator": node.member.group == 0, "takes_shards": node.member.holds}
        nodes.append({**member, "alive": node.error is None, **described})
    return {
        **attributes(seen.places, "missing", "local"),
        "nodes": nodes,
        "distributed": seen.places.done,
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


def sql(
    name: str | None = None,
    /,
    *,
    filters: Annotated[tuple[str, ...], Parameter("--filter")] = (),
    limit: int = 20,
    after: bool = False,
    before: bool = False,
) -> int:
    """Print the statement of a list as it is sent to PostgreSQL, or the names of all lists.

    Args:
        name: products, offers or a table; without one, all names
        filters: with this filter; again for more
        limit: items on a page
        after: the page after a cursor
        before: the page before a cursor
    """
    tables = {table.name: table for table in TABLES}
    known = {name: table.stored for name, table in tables.items()} | FILTERS
    if name is None:
        for one in sorted(known):
            print(f"{one:<22} filters: {', '.join(sorted(known[one]))}")
        return 0
    if name not in known:
        raise CommandError(f"There is no list {name}; `joinery sql` names them all.")
    if unknown := set(filters) - set(known[name]):
        raise CommandError(f"The list {name} has no filter {', '.join(sorted(unknown))}.")
    request = PageRequest(limit, "…" if after or before else None, backwards=before)
    if name in FILTERS:
        words = ["word0"] if "q" in filters else []
        print(list_sql(name, [*filters, *words], request))
    else:
        print(rendered(tables[name].list, page_names(request).union(filters), request.limit + 1))
    return 0
