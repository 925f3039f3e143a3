"""Tenants' tables can be distributed by organisation, and every statement is routed to one server.

No cluster is required. Each statement is planned on plain PostgreSQL as the owner, generically and without row security: each
read of a tenant's table must have a condition for `org`. Rules cover the faults that plans do not show.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from importlib.resources import files
from pkgutil import iter_modules
from typing import Any, Final

import psycopg
import pytest

import adapters.postgres
from adapters.postgres.catalogue_query import FILTERS, build_list_statement
from adapters.postgres.cluster import REFERENCE_TABLES
from adapters.postgres.nodes.node_pool import expand_shards
from adapters.postgres.stores import load_statements, render_statement
from adapters.postgres.unit_of_work import TABLES
from domain.kernel.paging import PageRequest
from tests.support.facet_statements import list_facet_statements
from tests.support.postgres import database

_OPTION = re.compile(r"--\? ([a-z0-9_ ]+)$", re.MULTILINE)
_NAMED = re.compile(r"%\((\w+)\)s")
_INSERT = re.compile(r"INSERT INTO ([a-z_]+)(?: AS \w+)? \(([^)]*)\)\s*(?:VALUES \(|SELECT )(.*)", re.DOTALL)
_TO_END = r"(?:(?!INSERT INTO).)*"
SCATTERS: Final[Mapping[str, str]] = {
    "billing.find_tenant": "a notification of the payment provider names a customer, not an organisation",
    "billing.list_accounts": "the scheduler reconciles every account; each in its name",
    "billing.list_ended_grace": "the scheduler ends grace periods of every organisation; each in its name",
    "billing.list_unclosed": "the scheduler closes months of every organisation; each in its name",
    "billing.list_automatic_purchases": "the scheduler buys credit for every organisation; each in its name",
    "billing.list_arrears": "operators look at accounts in arrears",
    "event_log.list_bounds": "one listener asks how far all logs go that are followed; each is named",
    "event_log.list_publishers": "the relay reads every publisher's log",
    "event_log.list_publishers_among": "the relay asks of those that wrote; each is named",
    "runs.list_due_exports": "the scheduler serves every organisation; each export expires in its name",
    "runs.list_due_scheduled_exports": "the scheduler serves every organisation; each export is created in its name",
    "runs.find_oldest_waiting": "the operator's look at how long exports wait",
    "idempotency.list_orgs_with_expired": "upkeep by age alone: whose answers are old",
    "idempotency.purge_expired": "upkeep by age alone; each organisation is named",
    "jobs.count_backlog": "operators look at what waits of all",
    "jobs.list_orgs_with_dispatched": "the relay serves every organisation's jobs",
    "jobs.list_due_lanes": "the relay serves every organisation's jobs",
    "jobs.mark_dispatched": "the relay serves every organisation's jobs; each is named",
    "jobs.find_next_due": "the relay serves every organisation's jobs",
    "jobs.list_orgs_of_lane": "whose a lane is that an earlier release named",
    "jobs.reset_dispatched": "the relay serves every organisation's jobs; each is named",
    "sources.find_recipient": "mail comes before it is known whose it is",
    "notifications.list_due": "the scheduler serves every organisation's rules; each in its name",
    "notifications.delete_old": "upkeep by age alone; each organisation is named",
    "notifications.list_orgs_with_old": "upkeep by age alone: whose notifications are old",
    "secrets.list_outdated_notification_addresses": "what is sealed under a former secret is sealed anew, whosever it is",
    "matching.measure_backlog": "operators ask how far matching is behind, all organisations together",
    "secrets.count_tenant_values": "operators ask how much is sealed under which secret",
    "secrets.list_outdated_answers": "what is sealed under a former secret is sealed anew, whosever it is",
    "secrets.list_outdated_export_targets": "the same",
    "secrets.list_outdated_former_webhook_secrets": "the same",
    "secrets.list_outdated_kept_for_undoing": "the same",
    "secrets.list_outdated_source_credentials": "the same",
    "secrets.list_outdated_webhook_secrets": "the same",
    "sources.list_due": "the scheduler serves every organisation's sources",
    "sources.list_followers": "the scheduler serves every organisation's sources that follow catalogues",
    "sources.find_next_due": "the scheduler serves every organisation's sources",
    "storage.list_open_batches": "operators look at every organisation's; each is named",
    "storage.list_due": "the scheduler serves every organisation; each entry is freed in its name",
    "storage.list_freed": "the scheduler serves every organisation; each entry is named with its tenant",
    "storage.sum_by_kind": "the operator's sums",
    "storage.sum_freed": "the operator's sums",
    "webhook_deliveries.list_ended_rotations": "the scheduler serves every organisation's endpoints",
    "webhook_deliveries.list_subscribers": "a worker serves every organisation's endpoints",
    "platform.list_busiest_tenants": "the operator's look at who has most to do",
    "platform.list_slowest_sources": "the operator's look at slow sources",
    "platform.list_failing_sources": "the operator's look at sources that fail",
    "platform.find_tenant_of_source": "the operator asks whose a source is",
    "platform.read_tenant_metrics": "what the operator is alerted about",
    "usage.find_unaggregated": "the scheduler folds what tenants have counted",
    "credits.list_due": "the scheduler serves every organisation; each is processed in its own transaction",
    "credits.list_orgs_with_old_reservations": "upkeep by age alone",
    "credits.delete_reservations": "upkeep by age alone; each organisation is named, in both modes",
    "comparison.list_orgs_with_expired": "upkeep by age alone",
    "assistant.count_ended_turns": "the state of the assistant, for all organisations together",
    "assistant.list_orgs_with_old_conversations": "upkeep by age alone",
    "assistant.delete_conversations": "upkeep by age alone; each organisation is named",
    "assistant.list_orgs_with_old_frames": "upkeep by age alone",
    "assistant.delete_frames": "upkeep by age alone; each organisation is named",
    "assistant.list_orgs_with_old_memories": "upkeep by age alone",
    "comparison.delete_expired": "upkeep by age alone; each organisation is named",
    "assistant.delete_memories": "upkeep by age alone; each organisation is named",
    "proposals.list_tenants_with_expired": "the scheduler serves every organisation; each is processed in its own transaction",
    "proposals.list_orgs_with_decided": "upkeep by age alone",
    "proposals.delete_decided": "upkeep by age alone; each organisation is named, in both modes",
    "demand.list_days": "the scheduler serves every vendor; each is named",
    "demand.summarise_subjects": "sums over all organisations, which the rule for cells checks",
    "demand.summarise_rest": "sums over all organisations, which the rule for cells checks",
    "demand.list_orgs_of_day": "the scheduler serves every organisation; each is named",
    "demand.remove_signals": "the end of a vendor's day; each organisation is named",
    "demand.list_orgs_with_old_ids": "upkeep by age alone",
    "demand.delete_ids": "upkeep by age alone; each organisation is named",
    "demand.list_orgs_with_old_cells": "upkeep by age alone",
    "demand.delete_cells": "upkeep by age alone; each organisation is named",
    "usage.list_resumable": "the scheduler lets go what a month or plan held back",
}
"""Statements that deliberately span organisations, each with the reason. Those that read `here.` are run on every node, of what it holds."""
PAGES = (PageRequest(2), PageRequest(2, "a"), PageRequest(2, "a", True))


def _load_statements() -> dict[str, str]:
    """Return the statements of the SQL files as rendered by their modules."""
    found: dict[str, str] = {}
    for module in iter_modules(adapters.postgres.__path__):
        statements = import_module(f"adapters.postgres.{module.name}").__dict__.get("SQL")
        if isinstance(statements, dict):
            found |= {f"{_find_area(statements)}.{name}": text for name, text in statements.items()}
    return found


def _find_area(statements: Mapping[str, str]) -> str:
    [area] = [name for name in AREAS if load_statements(name).keys() == statements.keys()]
    return area


AREAS = [
    entry.name.removesuffix(".sql")
    for entry in files("adapters.postgres").joinpath("sql").iterdir()
    if ".sql" in entry.name and entry.name != "cluster.sql"  # its statements query Citus and are tested by tests/citus
]
LOADED = _load_statements()


def _render_variants(statement: str) -> Iterator[str]:
    """Yield variants of the statement: forwards and backwards, with all combinable optional lines."""
    names = frozenset(name for line in _OPTION.findall(statement) for name in line.split())
    ways = [name for name in names if name.startswith("by_")] or [""]
    for way in ways:
        for left in ({"backwards", "before", "scan_limit"}, {"forwards", "after", "page_limit"}):
            yield render_statement(statement, names - left - {*ways} | {way}, 3)  # type: ignore[arg-type]


def list_statements() -> Iterator[tuple[str, str]]:
    """Yield (name, statement) of all complete statements; fragments are completed."""
    for name, text in LOADED.items():
        if (
            name.partition(".")[2] in LISTED
            or "staging" in name
            or "copy" in name
            or name.startswith("catalogue_facets.")
        ):
            continue
        whole = FRAGMENTS[name](text) if name in FRAGMENTS else text
        yield from ((name, one) for one in (_render_variants(whole) if "--?" in whole else (whole,)))
    yield from ((name, statement) for name, statement, _ in list_facet_statements())
    for listed, filters in FILTERS.items():
        words = ("word0", "word1") if "q" in filters else ()
        for page in PAGES:
            for walked in ("", *(name for name in (*filters, *words) if name not in ("q", "updated_since"))):
                yield f"catalogue.list_{listed}", build_list_statement(listed, (*filters, *words), page, walked)
                if walked:
                    yield (
                        f"catalogue.find_{listed}_scan_end",
                        build_list_statement(listed, (*filters, *words), page, walked, f"find_{listed}_scan_end"),
                    )
    for table in TABLES:
        for method in (
            "select_statement",
            "get_statement",
            "get_locked_statement",
            "insert_statement",
            "delete_statement",
        ):
            yield f"{table.name}.{method}", getattr(table, method)
        yield f"{table.name}.update", table.build_update_statement()
        yield from ((f"{table.name}.list", one) for one in _render_variants(table.list_statement))


LISTED = frozenset(
    {
        "list_products",
        "list_offers",
        "find_products_scan_end",
        "find_offers_scan_end",
        "scan_products",
        "scan_offers",
        "scan_deliveries",
    }
)
"""Statements completed by list_sql, or fragments of others."""


def _render_forecast(text: str) -> str:
    events = LOADED["webhooks.select_matching_events"]
    return f"WITH matching AS ({events}), marked AS (SELECT *, true AS close FROM matching) {text}"


def _render_own_events() -> str:
    return render_statement(
        load_statements("event_log")["select_events"], frozenset({"after", "forwards", "hidden", "since"}), 9
    )


FRAGMENTS: Final[Mapping[str, Callable[[str], str]]] = {
    "webhooks.compute_totals": _render_forecast,
    "webhooks.list_close_events": _render_forecast,
    **{
        f"event_log.{name}": lambda text: text.replace("{selection}", _render_own_events())
        for name in ("read_page", "read_bodies", "read_envelopes", "read_within_bytes")
    },
    "event_log.read_network_window": lambda text: text.replace("{window}", "9"),
}
"""Completion of fragments, as in the code."""


def test_every_statement_is_checked() -> None:
    named = {f"{area}.{name}" for area in AREAS for name in load_statements(area)}
    assert named == LOADED.keys()


def number_parameters(statement: str) -> tuple[str, str]:
    """Return the statement with numbered parameters, and the organisation's parameter."""
    names = list(dict.fromkeys(_NAMED.findall(statement)))
    numbered = _NAMED.sub(lambda found: f"${names.index(found[1]) + 1}", statement).replace("%%", "%")
    return numbered, f"${names.index('org') + 1}" if "org" in names else "none"


async def explain_statement(connection: psycopg.AsyncConnection[Any], statement: str) -> tuple[dict[str, Any], str]:
    """Return the generic plan of the statement, and the organisation's parameter."""
    numbered, org = number_parameters(expand_shards(statement, None))  # type: ignore[arg-type]
    count = len(set(re.findall(r"\$\d+", numbered)))
    await connection.execute(f"PREPARE looked_at AS {numbered}".encode())
    try:
        given = f"({', '.join(['NULL'] * count)})" if count else ""
        cursor = await connection.execute(f"EXPLAIN (FORMAT json, COSTS off) EXECUTE looked_at{given}".encode())
        row = await cursor.fetchone()
    finally:
        await connection.execute("DEALLOCATE looked_at")
    assert row is not None
    [explained] = row[0] if isinstance(row[0], list) else json.loads(row[0])
    return explained["Plan"], org


def find_unbound_tables(plan: Mapping[str, Any], org: str, tenants: frozenset[str]) -> set[str]:
    """Return the tenants' tables that the plan reads without a condition for the organisation."""
    found = {table for part in plan.get("Plans", ()) for table in find_unbound_tables(part, org, tenants)}
    table = re.sub(r"_(default|\d{8})$", "", plan.get("Relation Name", ""))
    if table in tenants and plan["Node Type"] != "ModifyTable":
        below = [part.get("Index Cond", "") for part in plan.get("Plans", ())]
        conditions = " ".join([plan.get(key, "") for key in ("Index Cond", "Filter", "Recheck Cond")] + below)
        if not re.search(
            rf"\borg = \({re.escape(org)}\)::text|\borg = {re.escape(org)}\b|\({re.escape(org)}\)::text = org\b",
            conditions,
        ):
            found.add(table)
    return found


def _list_tables(statement: str) -> list[str]:
    return re.findall(r"\b(?:FROM|JOIN|INTO|UPDATE)\s+(?:ONLY\s+)?(?:here\.)?([a-z_]+)\b", statement)


def _split_inserts(statement: str) -> list[str]:
    """Return each INSERT of the statement."""
    return re.findall(rf"INSERT INTO{_TO_END}", statement, re.DOTALL)


def _extract_value(listed: str, place: int) -> str:
    """Return the value at a position of a list of values, which may contain brackets."""
    depth, values = 0, [""]
    for letter in listed:
        depth += (letter == "(") - (letter == ")")
        if depth < 0 or len(values) > place + 1:
            break
        if letter == "," and not depth:
            values.append("")
        else:
            values[-1] += letter
    return values[place].split(" FROM ")[0].strip()


def _check_insert(insert: str, tenants: frozenset[str], parts: frozenset[str]) -> list[str]:
    """Return the faults of one INSERT into a tenant's table; `parts` are the names of a WITH."""
    found = _INSERT.match(insert)
    if found is None or found[1] not in tenants:
        return []
    faults = []
    columns = [column.strip() for column in found[2].split(",")]
    value = _extract_value(found[3], columns.index("org")) if "org" in columns else ""
    if not re.fullmatch(r"%\(org\)s|(?:\w+\.)?org", value):
        faults.append(f"a row of {found[1]} has no organisation, or one that is made up")
    read = frozenset(_list_tables(insert)[1:])
    if not re.search(r"\)\s*SELECT\b", insert):
        return faults
    if re.search(r"\b(nextval|random|clock_timestamp|gen_random_uuid)\(", insert):
        faults.append("an INSERT … SELECT calls a volatile function")
    if not read & (tenants | parts) and "ON CONFLICT" not in insert:
        faults.append(
            "an INSERT … SELECT from what is no tenant's table has no ON CONFLICT: policies would not be checked"
        )
    if any(re.match("new_|reported_", table) for table in read) and read & tenants:
        faults.append("an INSERT … SELECT joins a temporary table with a tenant's")
    if "%(" in insert.partition("DO UPDATE")[2]:
        faults.append("a parameter stands in DO UPDATE of an INSERT … SELECT")
    return faults


def find_broken_rules(statement: str, tenants: frozenset[str]) -> list[str]:
    """Return faults on a cluster that a plan does not show."""
    if not tenants & {*_list_tables(statement)}:
        return []
    parts = frozenset(re.findall(r"\b(\w+) AS \(", statement))
    faults = [fault for insert in _split_inserts(statement) for fault in _check_insert(insert, tenants, parts)]
    if re.search(r"(?<!EXISTS )\(\s*SELECT\s+FROM\b", statement):
        faults.append("a sub-select in FROM selects nothing")
    if "SKIP LOCKED" in statement and "org = %(org)s" not in statement:
        faults.append("rows of several organisations are locked")
    if "WITH RECURSIVE" in statement and "here." not in statement:
        faults.append("a recursive query spans servers")
    if len(re.findall(r"\bAS \(\s*(?:UPDATE|INSERT|DELETE)\b", statement)) > 1 and re.search(
        r"\)\s*INSERT\b", statement
    ):
        faults.append("two parts of a WITH write beside an INSERT")
    correlated = re.findall(r"\(\s*SELECT\b[^()]*\bFROM (\w+)[^()]*\bWHERE\s+\w+\.org = (?!%)\w+\.org", statement)
    if "here." not in statement and tenants & {*correlated}:
        faults.append("a sub-select is bound to the organisation of what is around it, and not to the parameter")
    if "here." in statement and re.search(r"\b(?:INSERT|UPDATE|DELETE|FOR (?:NO KEY )?UPDATE)\b", statement):
        faults.append("what is read over all organisations of a server is written to as well")
    return faults


_TENANT_TABLES = """
SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'org' AND NOT a.attisdropped
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relnamespace = 'public'::regnamespace
"""
_UNIQUE = """
SELECT i.indexrelid::regclass::text, c.relname, EXISTS (
    SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'org' AND a.attnum = ANY(i.indkey))
FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
WHERE i.indisunique AND c.relnamespace = 'public'::regnamespace AND NOT c.relispartition
"""


async def connect_planner() -> tuple[psycopg.AsyncConnection[Any], frozenset[str]]:
    """Return a superuser's session with generic plans, and the distributed tables."""
    connection = await psycopg.AsyncConnection.connect(await database(), autocommit=True)
    cursor = await connection.execute(_TENANT_TABLES)
    tenants = frozenset(name for (name,) in await cursor.fetchall()) - {*REFERENCE_TABLES}
    await connection.execute("SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off")
    for name, text in LOADED.items():
        if "staging" in name:
            await connection.execute(text.encode())
    return connection, tenants


pytestmark = pytest.mark.asyncio


async def test_every_statement_is_routed_to_one_server() -> None:
    connection, tenants = await connect_planner()
    async with connection:
        spanning: dict[str, set[str]] = {}
        for name, statement in list_statements():
            plan, org = await explain_statement(connection, statement)
            assert find_broken_rules(statement, tenants) == [], (name, statement)
            if found := find_unbound_tables(plan, org, tenants):
                spanning.setdefault(name, set()).update(found)
    assert spanning.keys() == SCATTERS.keys(), "SCATTERS names those that span organisations, and no others"


@pytest.mark.parametrize(
    "wrong",
    [
        "SELECT id FROM offers WHERE livemode = %(livemode)s ORDER BY id LIMIT 3",
        "SELECT o.id FROM offers o JOIN products p ON p.id = o.product WHERE o.org = %(org)s AND o.livemode = %(livemode)s",
        "SELECT id FROM offers WHERE org = %(variant)s AND variant = %(org)s",
        "UPDATE offers SET price = 1 WHERE id = %(id)s",
        "DELETE FROM jobs WHERE run_at < now()",
        "SELECT (SELECT count(*) FROM runs r WHERE r.source = s.id) FROM sources s WHERE s.org = %(org)s",
    ],
)
async def test_a_statement_that_spans_organisations_is_found(wrong: str) -> None:
    connection, tenants = await connect_planner()
    async with connection:
        plan, org = await explain_statement(connection, wrong)
    assert find_unbound_tables(plan, org, tenants)


_INTO = "INSERT INTO sources (org, livemode, id) "


@pytest.mark.parametrize(
    "wrong",
    [
        "INSERT INTO jobs (id, livemode) VALUES (%(id)s, true)",
        "INSERT INTO jobs (org, id) VALUES (%(id)s, %(org)s)",
        "INSERT INTO jobs (id, org) SELECT n, 'org_1' FROM unnest(%(ids)s) n ON CONFLICT DO NOTHING",
        _INTO + "SELECT %(org)s, true, id FROM unnest(%(ids)s::text[]) id",
        _INTO + "SELECT %(org)s, true, random() FROM runs WHERE org = %(org)s",
        _INTO + "SELECT %(org)s, true, n.id FROM new_products n JOIN runs r ON r.org = %(org)s ON CONFLICT DO NOTHING",
        _INTO + "SELECT %(org)s, true, id FROM new_products ON CONFLICT (id) DO UPDATE SET name = %(name)s",
        "SELECT count(*) FROM (SELECT FROM offers WHERE org = %(org)s) n",
        "SELECT id FROM jobs WHERE run_at < now() FOR UPDATE SKIP LOCKED",
        "WITH RECURSIVE o AS (SELECT org FROM jobs) SELECT * FROM o",
        "WITH a AS (UPDATE runs SET id = ''), b AS (DELETE FROM jobs) INSERT INTO uploads (org) SELECT org FROM a",
        "SELECT (SELECT r.id FROM runs r WHERE r.org = s.org LIMIT 1) FROM sources s WHERE s.org = %(org)s",
        "DELETE FROM jobs WHERE id IN (SELECT j.id FROM here.jobs AS j)",
    ],
)
async def test_statements_that_a_cluster_refuses_are_found(wrong: str) -> None:
    tenants = frozenset({"jobs", "sources", "runs", "offers", "uploads"})
    assert len(find_broken_rules(wrong, tenants)) == 1


async def test_unique_keys_contain_the_organisation() -> None:
    connection, tenants = await connect_planner()
    async with connection:
        rows = await (await connection.execute(_UNIQUE)).fetchall()
    assert {index for index, table, holds in rows if table in tenants and not holds} == set()
    assert any(table in tenants and holds for _, table, holds in rows)


async def test_policies_are_evaluated_on_the_shards() -> None:
    """No sub-select, which a cluster refuses, and no function except those of the session's tenant and its licences.

    The function of the licences reads the shard that every node has (`use_shard_of_licences`).
    """
    connection, tenants = await connect_planner()
    async with connection, connection.transaction(force_rollback=True):
        await connection.execute("SELECT set_licence_policies(false)")
        cursor = await connection.execute(
            "SELECT tablename, coalesce(qual, ''), coalesce(with_check, '') FROM pg_policies"
        )
        policies = await cursor.fetchall()
    assert tenants <= {table for table, _, _ in policies}
    for table, *conditions in policies:
        for condition in conditions:
            assert "select" not in condition.lower(), (table, condition)
            assert set(re.findall(r"(\w+)\(", condition)) <= {"current_setting", "AND", "COALESCE", "licensed_view"}, (
                table,
                condition,
            )
