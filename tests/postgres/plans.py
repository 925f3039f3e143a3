"""Plans from EXPLAIN for statements with named parameters, custom or generic."""

import json
import re
from collections.abc import Mapping
from typing import Any

import psycopg
from psycopg import sql

_NAMED = re.compile(r"%\((\w+)\)s")


async def explain_plan(
    connection: psycopg.AsyncConnection[Any], statement: str, values: Mapping[str, Any], *options: str
) -> dict[str, Any]:
    """Return the plan of the prepared statement under the session's `plan_cache_mode`; `options` are EXPLAIN's."""
    names = list(dict.fromkeys(_NAMED.findall(statement)))
    numbered = _NAMED.sub(lambda found: f"${names.index(found[1]) + 1}", statement).replace("%%", "%")
    await connection.execute(f"PREPARE looked_at AS {numbered}".encode())
    try:
        explained = f"EXPLAIN ({', '.join((*options, 'FORMAT json'))}) EXECUTE looked_at"
        given = sql.SQL(", ").join(sql.Literal(values[name]) for name in names)
        called = sql.SQL("({})").format(given) if names else sql.SQL("")
        cursor = await connection.execute(sql.SQL("{}{}").format(sql.SQL(explained), called))  # type: ignore[arg-type]
        row = await cursor.fetchone()
    finally:
        await connection.execute("DEALLOCATE looked_at")
    assert row is not None
    [explained_plan] = row[0] if isinstance(row[0], list) else json.loads(row[0])
    found: dict[str, Any] = explained_plan["Plan"]
    return found


def list_nodes(plan: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return all nodes of the plan."""
    return [plan, *(node for part in plan.get("Plans", ()) for node in list_nodes(part))]
