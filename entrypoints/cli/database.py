"""Commands for the database: migrate the schema, print SQL, and manage a cluster of PostgreSQL servers."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Annotated, Any

from cyclopts import Parameter

from adapters.postgres import cluster
from adapters.postgres import schema_migrations as migrations
from adapters.postgres.catalogue_query import FILTERS, build_list_statement
from adapters.postgres.cluster import ClusterError, ClusterStatus, CoordinatorConnection, connect_to_coordinator
from adapters.postgres.stores import build_page_line_names, render_statement
from adapters.postgres.unit_of_work import TABLES
from domain.kernel.paging import PageRequest
from entrypoints import settings
from entrypoints.cli.store import DEFAULT_OPTIONS, CommandOptions, select_attributes
from entrypoints.errors import CommandError, SettingsError


async def migrate(*, plan: bool = False, options: CommandOptions = DEFAULT_OPTIONS) -> int:
    """Migrate the database to this release's schema.

    Args:
        plan: List the pending migrations without applying them.
    """
    url = settings.read_owner_url(options.read_environment())
    try:
        names = await (migrations.list_pending_migrations if plan else migrations.migrate)(url)
        later = (await migrations.read_compatibility(url)).list_unknown_migrations()
    except migrations.MigrationError as error:
        raise CommandError(str(error)) from error
    newer = f" Its schema is that of a later, compatible release ({later[-1]})." if later else ""
    sentence = f"The database is up to date.{newer}"
    if names:
        sentence = f"{'Pending' if plan else 'Applied'} migrations: {', '.join(names)}."
    return options.print_result({"pending" if plan else "applied": names, "later": later}, sentence)


@asynccontextmanager
async def _open_coordinator(options: CommandOptions) -> AsyncIterator[CoordinatorConnection]:
    """Connect to the coordinator of the cluster. Raises SettingsError, CommandError."""
    url = options.read_environment().get("JOINERY_DATABASE_URL")
    if not url:
        raise SettingsError("JOINERY_DATABASE_URL is not set. Set it to the URL of the cluster's coordinator.")
    try:
        async with connect_to_coordinator(url) as cluster_coordinator:
            yield cluster_coordinator
    except (ClusterError, migrations.MigrationError) as error:
        raise CommandError(str(error)) from error


def _print_progress(line: str) -> None:
    """Print a progress message to standard error."""
    print(line, file=sys.stderr, flush=True)


async def distribute_tables(*, shards: int = 32, options: CommandOptions = DEFAULT_OPTIONS) -> int:
    """Distribute the tables over the nodes; if interrupted, run the command again.

    Args:
        shards: Number of database shards, which cannot be changed later, and maximum number of nodes. Each shard adds
            about 300 tables (partitions by day) to the system catalogue of every node.
    """
    async with _open_coordinator(options) as cluster_coordinator:
        applied = await migrations.migrate(cluster_coordinator.conninfo)
        result = await cluster.distribute_tables(cluster_coordinator, shards, _print_progress)
    answer = {
        "applied": applied,
        "reference": result.unplaced_reference_tables,
        "by_org": result.unplaced_distributed_tables,
        "local": result.local,
    }
    count = len(result.missing)
    sentence = f"Distributed {count} tables." if count else "All tables are already distributed."
    return options.print_result(answer, sentence)


async def show_status(*, options: CommandOptions = DEFAULT_OPTIONS) -> int:
    """Show the database shards and organisations of each node, and moves in progress."""
    async with _open_coordinator(options) as cluster_coordinator:
        status = await cluster.read_cluster_status(cluster_coordinator)
    return options.print_result(_build_status_json(status), *_format_status(status))


async def move(org: str, /, *, to: str | None = None, options: CommandOptions = DEFAULT_OPTIONS) -> int:
    """Move an organisation's database shard to another node while it is in use.

    Args:
        org: ID of the organisation.
        to: HOST:PORT of the target node (default: the node with the least data).
    """
    async with _open_coordinator(options) as cluster_coordinator:
        moved = await cluster.move_organisation(cluster_coordinator, org, to, _print_progress)
    return options.print_result(asdict(moved), f"{moved.org} is now at {moved.target}.")


async def rebalance(*, options: CommandOptions = DEFAULT_OPTIONS) -> int:
    """Distribute the database shards evenly over the nodes; the moves continue if the command is interrupted."""
    async with _open_coordinator(options) as cluster_coordinator:
        count = await cluster.rebalance_shards(cluster_coordinator, _print_progress)
    return options.print_result(
        {"moves": count}, f"Moved {count} shards." if count else "The shards are already distributed evenly."
    )


def _build_status_json(status: ClusterStatus) -> dict[str, Any]:
    """Return the status of the cluster as JSON."""
    nodes = []
    for node in status.nodes:
        described = asdict(node)
        del described["server"]
        member = {
            "node": node.server.name,
            "coordinator": node.server.group == 0,
            "takes_shards": node.server.accepts_shards,
        }
        nodes.append({**member, "alive": node.error is None, **described})
    return {
        **select_attributes(status.placement, "missing", "local"),
        "nodes": nodes,
        "distributed": status.placement.placed_tables,
        "moving": [asdict(transfer) for transfer in status.running_moves],
    }


def _format_status(status: ClusterStatus) -> list[str]:
    """Return the status of the cluster as lines of text."""
    lines = [f"{'node':<24} {'state':<12} {'shards':>7} {'MiB':>10} {'tenants':>8} {'open jobs':>10}"]
    for node in status.nodes:
        state = "alive" if node.error is None else "UNREACHABLE"
        role = "" if node.server.group else "  (coordinator)"
        lines.append(
            f"{node.server.name:<24} {state:<12} {node.shards:>7} {node.bytes / 2**20:>10.1f} {node.tenants:>8} "
            f"{node.open_jobs:>10}{role}"
        )
    for node in status.nodes:
        if node.error is not None:
            lines.append(f"\n{node.server.name}: {node.error}")
        if node.largest:
            lines.append(f"\nlargest tenants on {node.server.name}, according to the latest statistics")
            lines += [
                f"  {entry.org:<32} {entry.rows:>12} rows {entry.bytes / 2**20:>10.1f} MiB" for entry in node.largest
            ]
    for entry in status.running_moves:
        lines.append(
            f"\nmoving {entry.table} ({entry.shard}) from {entry.source} to {entry.target}: {entry.copied} of {entry.bytes} bytes, {entry.phase}"
        )
    if status.placement.missing:
        lines.append(f"\nnot distributed yet: {', '.join(status.placement.missing)}; run `joinery cluster init`")
    return lines


def print_sql(
    name: str | None = None,
    /,
    *,
    filters: Annotated[tuple[str, ...], Parameter("--filter")] = (),
    limit: int = 20,
    after: bool = False,
    before: bool = False,
) -> int:
    """Print the SQL statement that lists products, offers or the rows of a table; without a name, all names and filters.

    Args:
        name: products, offers or the name of a table (default: print all names).
        filters: Include this filter. Repeatable.
        limit: Number of items on a page.
        after: Print the statement for the page after a cursor.
        before: Print the statement for the page before a cursor.
    """
    tables = {table.name: table for table in TABLES}
    filters_by_list = {name: table.stored_columns for name, table in tables.items()} | FILTERS
    if name is None:
        for one in sorted(filters_by_list):
            print(f"{one:<22} filters: {', '.join(sorted(filters_by_list[one]))}")
        return 0
    if name not in filters_by_list:
        raise CommandError(
            f"{name!r} is not the name of a list: products, offers or a table. Run `joinery sql` to print all names."
        )
    if unknown := set(filters) - set(filters_by_list[name]):
        raise CommandError(
            f"The list {name!r} has no filter {', '.join(map(repr, sorted(unknown)))}. "
            f"Its filters are: {', '.join(sorted(filters_by_list[name])) or 'none'}."
        )
    request = PageRequest(limit, "…" if after or before else None, backwards=before)
    if name in FILTERS:
        words = ["word0"] if "q" in filters else []
        print(build_list_statement(name, [*filters, *words], request))
    else:
        print(
            render_statement(
                tables[name].list_statement, build_page_line_names(request).union(filters), request.limit + 1
            )
        )
    return 0
