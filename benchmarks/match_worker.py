"""`joinery worker`, whose matching keeps the scored pairs as they are: nothing is merged, superseded or told of.

`PAUSE_SECONDS` has it wait before the pairs of each `BATCH` variants are kept, so that tests can end it in the middle.
"""

import asyncio
import os
import sys
from collections.abc import Sequence

import msgspec
import psycopg

from domain.kernel.ids import new_id
from domain.matching.model import ScoredPair
from domain.matching.queueing import MATCH
from domain.matching.usecases.matching_stage import MatchingStage
from entrypoints.areas.area import Area
from entrypoints.areas.registry import AREAS
from entrypoints.cli.main import main
from entrypoints.worker import service
from ports.unit_of_work import Tx

_DROP = """
DELETE FROM match_pairs WHERE org = %(org)s AND livemode = %(livemode)s
    AND ("left" = ANY(%(ids)s) OR "right" = ANY(%(ids)s))
"""
_KEEP = """
INSERT INTO match_pairs (org, livemode, id, status, "left", left_product, "right", right_product, probability, prior, evidence,
    conflicts, created_at, updated_at, held)
SELECT %(org)s, %(livemode)s, id, 'open', "left", left_product, "right", right_product, probability, prior, evidence, conflicts,
    %(now)s, %(now)s, false
FROM jsonb_to_recordset(%(pairs)s) AS r (id text, "left" text, left_product text, "right" text, right_product text,
    probability float8, prior float8, evidence jsonb, conflicts text[])
"""


class KeptPairs:
    """Offers that are rows of match_pairs and nothing more, written as the tables' owner."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: psycopg.AsyncConnection | None = None

    async def offer(self, tx: Tx, matched: Sequence[str], scored: Sequence[ScoredPair]) -> None:
        """Keep the pairs in place of all that there are of these variants."""
        await asyncio.sleep(float(os.environ.get("PAUSE_SECONDS", "0")))
        if self._connection is None:
            self._connection = await psycopg.AsyncConnection.connect(self._url)
        tenant = {"org": tx.tenant.org, "livemode": tx.tenant.livemode}
        rows = msgspec.json.encode([{"id": new_id("mpr"), **msgspec.to_builtins(pair)} for pair in scored]).decode()
        async with self._connection.transaction():
            await self._connection.execute(_DROP.encode(), {**tenant, "ids": list(matched)})
            await self._connection.execute(_KEEP.encode(), {**tenant, "pairs": rows, "now": tx.now})


def _add_matching() -> None:
    """Have the worker match, unless an area of the service does so already."""
    offers = KeptPairs(os.environ["JOINERY_DATABASE_URL"])
    handled = (
        *AREAS,
        Area(
            "kept_matching",
            "",
            "",
            lambda _: None,
            (),
            lambda given: {MATCH: MatchingStage(given.uow, offers, matched=int(os.environ.get("BATCH", "500")))},
        ),
    )
    vars(service)["AREAS"] = handled


if __name__ == "__main__":
    _add_matching()
    sys.argv = ["joinery", "worker"]
    main()
