"""Check whether a transaction prevents VACUUM from removing dead rows."""

import asyncio
import re
from typing import Any

import psycopg

_LEFT = re.compile(r"(\d+) are dead but not yet removable")


async def count_unremovable_rows(owner: psycopg.AsyncConnection[Any]) -> int:
    """Return how many of 500 deleted rows VACUUM cannot remove."""
    notices: list[str] = []
    owner.add_notice_handler(lambda notice: notices.append(notice.message_primary or ""))
    await owner.execute("DROP TABLE IF EXISTS dead_rows; CREATE TABLE dead_rows AS SELECT generate_series(1, 500) AS n")
    await owner.execute("DELETE FROM dead_rows")
    for _ in range(10):  # background processes of the server hold snapshots for moments
        notices.clear()
        await owner.execute("VACUUM (VERBOSE) dead_rows")
        [left] = [int(found[1]) for line in notices for found in _LEFT.finditer(line)]
        if not left:
            break
        await asyncio.sleep(0.2)
    await owner.execute("DROP TABLE dead_rows")
    return left
