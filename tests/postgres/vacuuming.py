"""Whether anybody holds vacuum back: rows are deleted, and VACUUM reports how many it had to leave."""

import asyncio
import re
from typing import Any

import psycopg

_LEFT = re.compile(r"(\d+) are dead but not yet removable")


async def kept_back(owner: psycopg.AsyncConnection[Any]) -> int:
    """How many of 500 rows that were just deleted VACUUM must leave, because somebody may yet see them."""
    notices: list[str] = []
    owner.add_notice_handler(lambda notice: notices.append(notice.message_primary or ""))
    await owner.execute("DROP TABLE IF EXISTS dead_rows; CREATE TABLE dead_rows AS SELECT generate_series(1, 500) AS n")
    await owner.execute("DELETE FROM dead_rows")
    for _ in range(10):  # the server's own helpers look at the database now and then, for moments
        notices.clear()
        await owner.execute("VACUUM (VERBOSE) dead_rows")
        [left] = [int(found[1]) for line in notices for found in _LEFT.finditer(line)]
        if not left:
            break
        await asyncio.sleep(0.2)
    await owner.execute("DROP TABLE dead_rows")
    return left
