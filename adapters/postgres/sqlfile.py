"""Named SQL: each area's statements stand in sql/<area>.sql, each under a line `-- name --`."""

import re
from functools import cache
from importlib.resources import files
from typing import LiteralString, cast

_HEADING = re.compile(r"^-- ([a-z0-9_]+) --$", re.MULTILINE)


@cache
def statements(area: str, **columns: str) -> dict[str, LiteralString]:
    """The statements of sql/<area>.sql by name. They ship with the package, so they count as literal.

    `columns` are lists of columns by the name that stands for them in braces: those of a Table.
    """
    text = files(__package__).joinpath("sql", f"{area}.sql").read_text("utf-8")
    for name, listed in columns.items():
        text = text.replace("{" + name + "}", listed)
    parts = _HEADING.split(text)
    return {name: cast(LiteralString, body.strip()) for name, body in zip(parts[1::2], parts[2::2], strict=True)}
