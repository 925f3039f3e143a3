"""Matching of two sources by a worker process, also when the worker is killed."""

import asyncio
import signal
from collections.abc import Iterator
from random import Random

import pytest

from benchmarks.generated_furniture import generate_items, render_for_maker, render_for_vendor
from benchmarks.match_stage import HEADERS, build_item_row
from tests.flows.feeds import FeedServer, build_csv
from tests.flows.service_processes import ServiceProcesses, Tenancy, wait_until
from tests.postgres.databases import create_database

COUNT = 700
_PAIRS = """
SELECT l.sku_code, r.sku_code, p.probability, p.status FROM match_pairs p
JOIN variants l ON l.org = p.org AND l.id = p.left_variant JOIN variants r ON r.org = p.org AND r.id = p.right_variant
WHERE p.org = %(org)s
"""
_WAITING = "SELECT count(*) FROM match_queue WHERE org = %(org)s"
_OPEN = "SELECT count(*) FROM jobs WHERE org = %(org)s AND kind = 'matching.match'"


@pytest.fixture(scope="module")
def services_without_worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcesses]:
    """Run service processes without a worker."""
    processes = ServiceProcesses(asyncio.run(create_database("matching")), tmp_path_factory.mktemp("matching"))
    try:
        processes.start_api()
        yield processes
    finally:
        processes.stop()


def _import_feeds(tenancy: Tenancy, feeds: FeedServer) -> None:
    random = Random(4)
    items = generate_items(random, COUNT)
    texts_by_source = {
        "maker": [render_for_maker(one) for one in items],
        "vendor": [render_for_vendor(random, one) for one in items],
    }
    for vendor, prefix in (("maker", "A"), ("vendor", "B")):
        rows = [tuple(build_item_row(at, one, texts_by_source[vendor][at], prefix)) for at, one in enumerate(items)]
        url = feeds.serve(f"/{tenancy.tenant.org}/{vendor}.csv", build_csv(HEADERS, rows))
        source = tenancy.api.create_source("url", config={"url": url, "currency": "usd"})
        assert tenancy.api.pull(source)["status"] == "succeeded"


def _fetch_pairs(
    services_without_worker: ServiceProcesses, tenancy: Tenancy
) -> dict[frozenset[str], tuple[float, str]]:
    return {
        frozenset(row[:2]): (row[2], row[3])
        for row in services_without_worker.fetch_rows(_PAIRS, org=tenancy.tenant.org)
    }


def _is_matched(services_without_worker: ServiceProcesses, tenancy: Tenancy) -> dict[frozenset[str], tuple[float, str]]:
    org = tenancy.tenant.org
    wait_until(
        lambda: (
            not services_without_worker.fetch_value(_WAITING, org=org)
            and not services_without_worker.fetch_value(_OPEN, org=org)
        ),
        "all is matched",
        within=120,
    )
    return _fetch_pairs(services_without_worker, tenancy)


def _list_merged(pairs: dict[frozenset[str], tuple[float, str]]) -> set[frozenset[str]]:
    return {pair for pair, (_, status) in pairs.items() if status == "merged"}


@pytest.mark.soak
def test_pairs_are_found_and_merged_when_the_worker_is_killed(
    services_without_worker: ServiceProcesses, feeds: FeedServer
) -> None:
    steady, shaken = services_without_worker.create_organisation(), services_without_worker.create_organisation()
    worker = services_without_worker.start("worker")
    _import_feeds(steady, feeds)
    undisturbed = _is_matched(services_without_worker, steady)
    services_without_worker.stop(worker)
    merged = _list_merged(undisturbed)
    wrong = [pair for pair in merged if len({code[1:] for code in pair}) != 1]
    assert len(merged) >= 0.2 * COUNT and not wrong
    shown = services_without_worker.fetch_value(
        "SELECT count(*) FROM products WHERE org = %(org)s AND merged_into IS NULL", org=steady.tenant.org
    )
    documents = services_without_worker.fetch_value(
        "SELECT count(*) FROM product_documents WHERE org = %(org)s", org=steady.tenant.org
    )
    assert (
        shown
        == documents
        < services_without_worker.fetch_value(
            "SELECT count(*) FROM products WHERE org = %(org)s", org=steady.tenant.org
        )
    )

    first = services_without_worker.start("worker")
    _import_feeds(shaken, feeds)
    wait_until(lambda: _fetch_pairs(services_without_worker, shaken), "some are matched", within=60)
    services_without_worker.stop(first, number=signal.SIGKILL)
    services_without_worker.start("worker")
    after = _is_matched(services_without_worker, shaken)
    assert _list_merged(after) == merged
    for one, other in ((undisturbed, after), (after, undisturbed)):
        assert {pair for pair, (probability, _) in one.items() if probability > 0.6} <= other.keys()
