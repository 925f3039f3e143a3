"""Rules of a Citus cluster for the schema and all statements, checked on plain PostgreSQL.

A statement is parsed by the server: the body of an SQL function in standard syntax is stored as a tree in which every table,
column and function is resolved. Statements that Citus refuses or executes wrongly are found in that tree or in the plan.
"""

import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from itertools import count
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import psycopg
import pytest

import adapters.postgres
from adapters.postgres.cluster import REFERENCE_TABLES
from adapters.postgres.nodes.node_pool import expand_shards
from tests.meta.test_distribution import connect_planner, explain_statement, list_statements, number_parameters

pytestmark = pytest.mark.asyncio

Tree = dict[str, Any]
_TOKEN = re.compile(r'[{}()]|"(?:\\.|[^"\\])*"|(?:\\.|[^\s{}()\\])+')
_SELECT = "1"
_INSERT = "3"
"""CmdType of nodes/nodes.h."""
_FUNCTIONS = ("funcid", "opfuncid")
_RESOLVED = "SELECT oid::text, relname FROM pg_class WHERE relkind IN ('r', 'p')"
_MUTABLE = "SELECT oid::text, provolatile FROM pg_proc WHERE provolatile <> 'i'"
_COLUMNS = """
SELECT c.relname, format_type(a.atttypid, NULL), coalesce(l.collname, '') FROM pg_class c
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'org' AND NOT a.attisdropped
LEFT JOIN pg_collation l ON l.oid = a.attcollation
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
"""
_TABLES = """
SELECT c.relname FROM pg_class c
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
"""
_TEMPORARY = "SELECT relname FROM pg_class WHERE relpersistence = 't' AND relkind = 'r'"
_EXEMPT = {
    "dump.BEGIN_EPOCHS": "carried out on shards by name (connecting.py), or where nothing is distributed (dump.py)"
}
LOCAL = (
    "authenticators",
    "key_ring",
    "oauth_clients",
    "oauth_codes",
    "oauth_devices",
    "oauth_families",
    "oauth_tokens",
    "one_time_links",
    "outgoing_mail",
    "passkey_challenges",
    "passkeys",
    "platform_backups",
    "platform_checks",
    "platform_incidents",
    "platform_instances",
    "purges",
    "recovery_codes",
    "schema_migrations",
    "security_events",
    "sessions",
    "users",
)
"""Tables without organisation, which are at the coordinator."""
PER_NODE = ("log_server",)
"""Tables that exist separately on each node."""
_JOINS = ("Nested Loop", "Hash Join", "Merge Join")
_DAY = re.compile(r"_(default|\d{8})$")
_STATEMENT = re.compile(r"\s*(WITH|SELECT|INSERT|UPDATE|DELETE)\b")
_NAMED_TABLE = re.compile(r"\b(?:FROM|JOIN|USING|INTO|UPDATE)\s+(\w+)")
_PLACE = re.compile(r"%s")
_UNNAMED_PART = re.compile(r"\bhere\.[a-z_]+\b(?! (?:AS )?[a-z])")


def parse_tree(text: str) -> list[Tree]:
    """Parse a `pg_node_tree` into nested mappings of fields, with the kind under "node"."""
    found: list[Tree] = []
    stack: list[tuple[Tree, str]] = []
    tokens = iter(_TOKEN.findall(text))
    for token in tokens:
        if token == "{":
            node: Tree = {"node": next(tokens)}
            (stack[-1][0][stack[-1][1]] if stack else found).append(node)
            stack.append((node, ""))
        elif token == "}":
            stack.pop()
        elif token.startswith(":"):
            stack[-1] = (stack[-1][0], token[1:])
            stack[-1][0][token[1:]] = []
        elif token not in ("(", ")", "<>") and stack and stack[-1][1]:
            stack[-1][0][stack[-1][1]].append(token)
    return found


def walk_nodes(tree: Tree) -> Iterator[Tree]:
    """Yield a node and its descendants."""
    yield tree
    for values in tree.values():
        if isinstance(values, list):
            for value in values:
                if isinstance(value, dict):
                    yield from walk_nodes(value)


@dataclass(frozen=True)
class ClusterRules:
    """Rules for statements, with names and volatilities of the schema by `oid`."""

    connection: psycopg.AsyncConnection[Any]
    _tenants: frozenset[str]
    tables: Mapping[str, str]
    _mutable: Mapping[str, str]
    _temporary: frozenset[str]

    async def find_faults(self, statement: str) -> list[str]:
        """Return the faults of the statement on a cluster."""
        numbered, _ = number_parameters(expand_shards(statement, None))  # type: ignore[arg-type]
        found = [fault for query in await self._queries(numbered) for fault in self._check_query(query)]
        plan, _ = await explain_statement(self.connection, statement)
        return [*found, *self._check_joins(plan, list_cte_plans(plan))]

    async def _queries(self, numbered: str) -> list[Tree]:
        await self.connection.execute(f"PREPARE typed AS {numbered}".encode())
        cursor = await self.connection.execute(
            "SELECT array_to_string(parameter_types, ', ') FROM pg_prepared_statements WHERE name = 'typed'"
        )
        [types] = await cursor.fetchone() or [""]
        await self.connection.execute("DEALLOCATE typed")
        async with self.connection.transaction(force_rollback=True):
            await self.connection.execute(
                f"CREATE FUNCTION pg_temp.looked_at({types}) RETURNS void LANGUAGE sql BEGIN ATOMIC {numbered}; END".encode()
            )
            cursor = await self.connection.execute(
                "SELECT prosqlbody::text FROM pg_proc WHERE oid = 'pg_temp.looked_at'::regproc"
            )
            [body] = await cursor.fetchone() or [""]
        return parse_tree(body)

    def _check_query(self, query: Tree) -> Iterator[str]:
        """Yield the faults of a statement and of its WITH parts."""
        for one in walk_nodes(query):
            if one["node"] != "QUERY" or one["commandType"][0] == _SELECT:
                continue
            target = self._find_target(one)
            if target in self._tenants and one["commandType"][0] == _INSERT:
                yield from self._check_insert(one)
                yield from self._check_functions(node for part in one["onConflict"] for node in walk_nodes(part))
            elif target in self._tenants:
                yield from self._check_functions(walk_nodes(query))
            elif target in LOCAL and self._list_tables(one) - {*LOCAL, ""}:
                yield f"{target}, which lies at the coordinator, is written by what other tables hold"

    def _find_target(self, query: Tree) -> str:
        entry = query["rtable"][int(query["resultRelation"][0]) - 1]
        return self.tables.get(entry["relid"][0], "")

    def _list_tables(self, query: Tree) -> set[str]:
        return {
            self.tables.get(node["relid"][0], "") for node in walk_nodes(query) if "rtekind" in node and "relid" in node
        }

    def _check_functions(self, within: Iterator[Tree]) -> Iterator[str]:
        """Check functions: a cluster evaluates STABLE functions before routing, so none may depend on a row."""
        for node in within:
            if node["node"] == "SUBSCRIPTINGREF":
                yield "an array is subscripted in what changes rows (Citus 13.2 ends the session)"
            volatility = {self._mutable.get(node[name][0], "i") for name in _FUNCTIONS if name in node}
            if "v" in volatility:
                yield "a volatile function is called where rows are changed"
            if "s" in volatility and any(below["node"] == "VAR" for below in walk_nodes(node)):
                yield "a stable function of a column is called where rows are changed"

    def _check_insert(self, query: Tree) -> Iterator[str]:
        """Check an INSERT … SELECT, which must run on the shard; otherwise it returns the number of read rows."""
        sources = [entry for entry in query["rtable"] if entry.get("rtekind") == ["1"]]
        for source in (node for entry in sources for node in entry["subquery"] if isinstance(node, dict)):
            direct = {self.tables.get(e["relid"][0], "") for e in source["rtable"] if e.get("rtekind") == ["0"]}
            first = next(e for e in query["targetList"] if e["resno"] == ["1"])["expr"][0]
            org = source["targetList"][int(first["varattno"][0]) - 1]["expr"][0] if first["node"] == "VAR" else first
            if direct & self._tenants and org["node"] != "VAR":
                yield "an INSERT … SELECT of a tenants' table takes the organisation from a parameter"

    def _check_joins(self, plan: Mapping[str, Any], named: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
        """Check joins: only a full join reads both sides separately."""
        for part in plan.get("Plans", ()):
            yield from self._check_joins(part, named)
        if plan["Node Type"] in _JOINS and plan["Join Type"] != "Full":
            tables = {_DAY.sub("", table) for table in list_scanned_tables(plan, named)}
            if tables & self._tenants and tables & self._temporary:
                yield "a temporary table is joined with a tenants' table"


def list_scanned_tables(plan: Mapping[str, Any], named: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield the tables that a part of a plan reads, including those of a WITH, without sub-selects in conditions."""
    if table := plan.get("Relation Name"):
        yield table
    if plan["Node Type"] == "CTE Scan" and plan["CTE Name"] in named:
        yield from list_scanned_tables(named[plan["CTE Name"]], named)
    for part in plan.get("Plans", ()):
        if part.get("Parent Relationship") not in ("InitPlan", "SubPlan"):
            yield from list_scanned_tables(part, named)


def list_cte_plans(plan: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the plans of a WITH by name."""
    found = {}
    for part in plan.get("Plans", ()):
        if (name := part.get("Subplan Name", "")).startswith("CTE "):
            found[name.removeprefix("CTE ")] = part
        found |= list_cte_plans(part)
    return found


async def load_rules() -> ClusterRules:
    """Load the rules with a connection to a migrated database with all temporary tables."""
    connection, tenants = await connect_planner()
    tables = dict(await (await connection.execute(_RESOLVED)).fetchall())
    mutable = dict(await (await connection.execute(_MUTABLE)).fetchall())
    temporary = await (await connection.execute(_TEMPORARY)).fetchall()
    return ClusterRules(connection, tenants, tables, mutable, frozenset(name for (name,) in temporary))


def list_constants(tables: Container[str]) -> Iterator[tuple[str, str]]:
    """Return (place, statement) of the statements about these tables in modules, apart from the SQL files."""
    for module in iter_modules(adapters.postgres.__path__):
        if module.name == "cluster":  # its statements query Citus and are tested by tests/citus
            continue
        for name, value in vars(import_module(f"adapters.postgres.{module.name}")).items():
            if isinstance(value, str) and _STATEMENT.match(value) and "{" not in value:
                named = _NAMED_TABLE.findall(value)
                if named and all(table in tables for table in named):
                    yield f"{module.name}.{name}", _PLACE.sub(lambda _, numbers=count(): f"%(p{next(numbers)})s", value)


async def test_no_statement_breaks_a_rule() -> None:
    rules = await load_rules()
    async with rules.connection:
        every = [*list_statements(), *list_constants(rules.tables.values())]
        found = {name: faults for name, one in every if (faults := await rules.find_faults(one))}
    assert found.keys() == _EXEMPT.keys() and any(name.startswith("erasure.") for name, _ in every)


@pytest.mark.parametrize(
    ("wrong", "fault"),
    [
        (
            "UPDATE products p SET status = n.status FROM new_products n WHERE p.org = %(org)s AND p.id = n.id",
            "temporary",
        ),
        ("SELECT p.id FROM variants p JOIN new_variants n USING (id) WHERE p.org = %(org)s", "temporary"),
        ("DELETE FROM offers o USING new_offers n WHERE o.org = %(org)s AND o.id = n.id", "temporary"),
        ("SELECT id FROM products WHERE org = %(org)s AND id IN (SELECT product FROM new_terms)", "temporary"),
        (
            "WITH n AS MATERIALIZED (SELECT id FROM new_offers) SELECT o.id FROM offers o JOIN n USING (id) WHERE o.org = %(org)s",
            "temporary",
        ),
        ("UPDATE jobs SET run_at = run_at + %(by)s::interval WHERE org = %(org)s", "stable"),
        ("DELETE FROM jobs WHERE org = %(org)s AND run_at + interval '1 day' < now()", "stable"),
        ("UPDATE sources SET name = to_char(created_at, 'YYYY') WHERE org = %(org)s", "stable"),
        ("UPDATE offers SET updated_at = clock_timestamp() WHERE org = %(org)s", "volatile"),
        ("UPDATE offers SET version = (%(some)s::int[])[version] WHERE org = %(org)s", "subscripted"),
        (
            "INSERT INTO storage_usage AS s (org, livemode, bytes) VALUES (%(org)s, true, 1) "
            "ON CONFLICT (org, livemode) DO UPDATE SET bytes = extract(epoch FROM now() - interval '1 s' * s.bytes)",
            "stable",
        ),
        (
            "INSERT INTO match_queue (org, livemode, variant, stamp) "
            "SELECT %(org)s, true, id, 1 FROM variants WHERE org = %(org)s ON CONFLICT DO NOTHING",
            "parameter",
        ),
        ('DELETE FROM sessions WHERE "user" IN (SELECT "user" FROM members WHERE org = %(org)s)', "coordinator"),
    ],
)
async def test_a_broken_rule_is_found(wrong: str, fault: str) -> None:
    rules = await load_rules()
    async with rules.connection:
        [found] = set(await rules.find_faults(wrong))
    assert fault in found


async def test_parts_of_a_table_have_an_alias() -> None:
    """A cluster reads `here.<table>` as a subquery, for which PostgreSQL 15 requires an alias."""
    found = {name: _UNNAMED_PART.findall(statement) for name, statement in list_statements()}
    assert {name: parts for name, parts in found.items() if parts} == {}


async def test_organisation_columns_have_one_type_and_collation() -> None:
    """A cluster only co-locates tables by columns of the same type and collation."""
    connection, _ = await connect_planner()
    async with connection:
        rows = await (await connection.execute(_COLUMNS)).fetchall()
    assert {(table, kind, collation) for table, kind, collation in rows if (kind, collation) != ("text", "C")} == set()
    assert len(rows) > 40


async def test_every_table_has_a_place() -> None:
    connection, tenants = await connect_planner()
    async with connection:
        tables = {name for (name,) in await (await connection.execute(_TABLES)).fetchall()}
    assert tables - tenants == {*REFERENCE_TABLES, *LOCAL, *PER_NODE}, "LOCAL declares tables without `org`"


async def test_the_documentation_names_every_table() -> None:
    """docs/cluster.md lists the tables that are not distributed by organisation."""
    rows = dict(
        re.findall(
            r"^\| ([^|]+?) \| (.+?) \|$",
            (Path(__file__).parents[2] / "docs/cluster.md").read_text("utf-8"),
            re.MULTILINE,
        )
    )
    listed = {place: re.findall(r"`([a-z_]+)`", tables) for place, tables in rows.items()}
    assert listed["On every node"] == sorted(REFERENCE_TABLES)
    assert listed["At the coordinator"] == sorted(LOCAL)
    assert listed["On each node, its own"] == sorted(PER_NODE)
