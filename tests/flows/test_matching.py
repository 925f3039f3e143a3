"""Matching by a worker process: two sources are loaded, and pairs come out, whatever happens to the worker meanwhile."""

import asyncio
import signal
from collections.abc import Iterator
from random import Random

import pytest

from benchmarks.generated_furniture import generate_items, render_for_maker, render_for_vendor
from benchmarks.match_stage import HEADERS, build_item_row
from tests.flows.feeds import FeedServer, build_csv
from tests.flows.service_processes import ServiceProcesses, Tenancy, wait_until
from tests.postgres.databases import fresh_database

COUNT = 700
_PAIRS = """
SELECT l.sku_code, r.sku_code, p.probability, p.status FROM match_pairs p
JOIN variants l ON l.org = p.org AND l.id = p.left_variant JOIN variants r ON r.org = p.org AND r.id = p.right_variant
WHERE p.org = %(org)s
"""
_WAITING = "SELECT count(*) FROM match_queue WHERE org = %(org)s"
_OPEN = "SELECT count(*) FROM jobs WHERE org = %(org)s AND kind = 'matching.match'"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcesses]:
    """A stage of its own, without a worker."""
    made = ServiceProcesses(asyncio.run(fresh_database("matching")), tmp_path_factory.mktemp("matching"))
    try:
        made.start_api()
        yield made
    finally:
        made.stop()


def _load(tenancy: Tenancy, feeds: FeedServer) -> None:
    random = Random(4)
    made = generate_items(random, COUNT)
    texts_by_source = {
        "maker": [render_for_maker(one) for one in made],
        "vendor": [render_for_vendor(random, one) for one in made],
    }
    for vendor, prefix in (("maker", "A"), ("vendor", "B")):
        rows = [tuple(build_item_row(at, one, texts_by_source[vendor][at], prefix)) for at, one in enumerate(made)]
        url = feeds.serve(f"/{tenancy.tenant.org}/{vendor}.csv", build_csv(HEADERS, rows))
        source = tenancy.api.create_source("url", config={"url": url, "currency": "usd"})
        assert tenancy.api.pull(source)["status"] == "succeeded"


def _pairs(house: ServiceProcesses, tenancy: Tenancy) -> dict[frozenset[str], tuple[float, str]]:
    return {frozenset(row[:2]): (row[2], row[3]) for row in house.fetch_rows(_PAIRS, org=tenancy.tenant.org)}


def _matched(house: ServiceProcesses, tenancy: Tenancy) -> dict[frozenset[str], tuple[float, str]]:
    org = tenancy.tenant.org
    wait_until(
        lambda: not house.fetch_value(_WAITING, org=org) and not house.fetch_value(_OPEN, org=org),
        "all is matched",
        within=120,
    )
    return _pairs(house, tenancy)


def _merged(pairs: dict[frozenset[str], tuple[float, str]]) -> set[frozenset[str]]:
    return {pair for pair, (_, status) in pairs.items() if status == "merged"}


@pytest.mark.soak
def test_pairs_come_out_and_merge_also_when_the_worker_is_killed(house: ServiceProcesses, feeds: FeedServer) -> None:
    steady, shaken = house.create_organisation(), house.create_organisation()
    worker = house.start("worker")
    _load(steady, feeds)
    undisturbed = _matched(house, steady)
    house.stop(worker)
    merged = _merged(undisturbed)
    wrong = [pair for pair in merged if len({code[1:] for code in pair}) != 1]
    assert len(merged) >= 0.2 * COUNT and not wrong
    shown = house.fetch_value(
        "SELECT count(*) FROM products WHERE org = %(org)s AND merged_into IS NULL", org=steady.tenant.org
    )
    documents = house.fetch_value("SELECT count(*) FROM product_documents WHERE org = %(org)s", org=steady.tenant.org)
    assert (
        shown
        == documents
        < house.fetch_value("SELECT count(*) FROM products WHERE org = %(org)s", org=steady.tenant.org)
    )

    first = house.start("worker")
    _load(shaken, feeds)
    wait_until(lambda: _pairs(house, shaken), "some are matched", within=60)
    house.stop(first, number=signal.SIGKILL)
    house.start("worker")
    after = _matched(house, shaken)
    assert _merged(after) == merged
    for one, other in ((undisturbed, after), (after, undisturbed)):
        assert {pair for pair, (probability, _) in one.items() if probability > 0.6} <= other.keys()
