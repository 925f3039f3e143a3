"""Named SQL: an area's statements are in sql/<area>.sql, each under a line `-- name --`."""

import re
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import Final, LiteralString, cast

_HEADING: Final = re.compile(r"^-- ([a-z0-9_]+) --$", re.MULTILINE)
_OPTION: Final = re.compile(r"\s*--\? ([a-z0-9_ ]+)$")
_HERE: Final = re.compile(r"\bhere\.([a-z_]+)")


@cache
def statements(area: str, **columns: str) -> dict[str, LiteralString]:
    """Return the statements of sql/<area>.sql by name. They ship with the package, so they count as literal.

    `columns` replace names in braces by lists of columns: those of a Table.
    """
    text = files(__package__).joinpath("sql", f"{area}.sql").read_text("utf-8")
    for name, listed in columns.items():
        text = text.replace("{" + name + "}", listed)
    parts = _HEADING.split(text)
    return {name: cast(LiteralString, body.strip()) for name, body in zip(parts[1::2], parts[2::2], strict=True)}


def rendered(statement: LiteralString, names: frozenset[str], limit: int | None = None) -> LiteralString:
    """Return the statement with those optional lines, which end in `--? name name`, whose names are all given.

    `{limit}` is written out: as a parameter it would make PostgreSQL plan every page anew (measured: 55 µs of 140).
    """
    return _chosen(statement, names).replace("{limit}", str(limit))


@lru_cache(maxsize=256)  # clients choose the names: all choices of the longest statement would take megabytes
def _chosen(statement: LiteralString, names: frozenset[str]) -> LiteralString:
    lines = []
    for line in statement.splitlines():
        option = _OPTION.search(line)
        if option is None and not line.startswith("--"):
            lines.append(line)
        elif option and names.issuperset(option[1].split()):
            lines.append(line[: option.start()])
    return "\n".join(lines)


def here(statement: LiteralString, parts: Mapping[str, Sequence[str]] | None) -> LiteralString:
    """Return the statement with each `here.<table>` replaced by the shards of the table on a node.

    Shards are read by name, past the router of the database, so they are for reading only.
    """
    return _HERE.sub(lambda found: _of_parts(found[1], parts), statement)


def _of_parts(table: str, parts: Mapping[str, Sequence[str]] | None) -> str:
    if parts is None:
        return table
    return "(" + " UNION ALL ".join(f"SELECT * FROM {part}" for part in parts[table]) + ")"
