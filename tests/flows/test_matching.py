"""Matching by a worker process: two sources are loaded, and pairs come out, whatever happens to the worker meanwhile."""

import asyncio
import signal
from collections.abc import Iterator
from random import Random

import pytest

from benchmarks.habits import metric, retold, things
from benchmarks.match_stage import HEADERS, item_row
from tests.flows.feeds import FeedServer, table
from tests.flows.stage import Stage, Tenancy, eventually
from tests.postgres.databases import fresh_database

WORKER = ("-m", "benchmarks.match_worker")
COUNT = 150
_PAIRS = """
SELECT l.sku_code, r.sku_code, p.probability FROM match_pairs p
JOIN variants l ON l.org = p.org AND l.id = p."left" JOIN variants r ON r.org = p.org AND r.id = p."right" WHERE p.org = %(org)s
"""
_WAITING = "SELECT count(*) FROM match_queue WHERE org = %(org)s"
_OPEN = "SELECT count(*) FROM jobs WHERE org = %(org)s AND kind = 'matching.match'"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A stage of its own, without a worker."""
    made = Stage(asyncio.run(fresh_database("matching")), tmp_path_factory.mktemp("matching"))
    try:
        made.api()
        yield made
    finally:
        made.stop()


def _load(tenancy: Tenancy, feeds: FeedServer) -> None:
    random = Random(4)
    made = things(random, COUNT)
    told = {"maker": [metric(one) for one in made], "vendor": [retold(random, one) for one in made]}
    for vendor, prefix in (("maker", "A"), ("vendor", "B")):
        rows = [tuple(item_row(at, one, told[vendor][at], prefix)) for at, one in enumerate(made)]
        url = feeds.serve(f"/{tenancy.tenant.org}/{vendor}.csv", table(HEADERS, rows))
        source = tenancy.api.source("url", config={"url": url, "currency": "usd"})
        assert tenancy.api.pull(source)["status"] == "succeeded"


def _pairs(house: Stage, tenancy: Tenancy) -> dict[frozenset[str], float]:
    return {frozenset(row[:2]): row[2] for row in house.rows(_PAIRS, org=tenancy.tenant.org)}


def _matched(house: Stage, tenancy: Tenancy) -> dict[frozenset[str], float]:
    org = tenancy.tenant.org
    eventually(
        lambda: not house.value(_WAITING, org=org) and not house.value(_OPEN, org=org), "all is matched", within=90
    )
    return _pairs(house, tenancy)


def test_pairs_come_out_also_when_the_worker_is_killed(house: Stage, feeds: FeedServer) -> None:
    steady, shaken = house.organisation(), house.organisation()
    worker = house.start("steady", WORKER)
    _load(steady, feeds)
    undisturbed = _matched(house, steady)
    house.stop(worker)
    right = [pair for pair in undisturbed if len({code[1:] for code in pair}) == 1]
    assert len(right) >= 0.9 * COUNT and len(right) >= 0.97 * len(undisturbed)

    first = house.start("first", WORKER, PAUSE_SECONDS="0.4", BATCH="20")
    _load(shaken, feeds)
    eventually(lambda: _pairs(house, shaken), "some are matched", within=60)
    house.stop(first, number=signal.SIGKILL)
    assert house.value(_WAITING, org=shaken.tenant.org), "it was in the middle"
    house.start("second", WORKER, BATCH="20")
    after = _matched(house, shaken)
    for one, other in ((undisturbed, after), (after, undisturbed)):
        assert {pair for pair, probability in one.items() if probability > 0.6} <= other.keys()
