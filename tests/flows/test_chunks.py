"""A chunk is prepared while the previous one is written, with the same result as afterwards."""

import random
from pathlib import Path
from typing import Any

import pytest

from domain.catalogue.model import Stream
from domain.runs import chunks
from domain.runs.usecases.chunk_changes import ChunkPortion
from domain.runs.usecases.chunk_writer import ChunkWriter
from tests.flows.feeds import build_csv
from tests.flows.in_process_service import InProcessService, open_service

pytestmark = pytest.mark.asyncio
HEADERS = ("Parent SKU", "SKU", "Title", "Price", "Qty")
STATE = """
SELECT p.key, p.data, p.status, p.version, v.key, v.data, v.version, o.location, o.price, o.quantity, o.availability, o.version, o.withdrawn_at IS NULL
FROM products p JOIN variants v ON v.org = p.org AND v.livemode = p.livemode AND v.product = p.id
LEFT JOIN offers o ON o.org = v.org AND o.livemode = v.livemode AND o.variant = v.id
WHERE p.source = %s ORDER BY 1, 5, 8
"""
EVENTS = "SELECT type, count(*) FROM events WHERE source = %s GROUP BY type ORDER BY type"


def _build_feeds(dice: random.Random) -> list[bytes]:
    """Return feeds of one vendor in which items move between products, are repeated, disappear and return."""
    items = {f"S-{number}": f"G-{number // 3}" for number in range(90)}
    feeds = []
    for _ in range(4):
        for sku in dice.sample(sorted(items), 25):
            items[sku] = dice.choice(sorted(set(items.values())))
        listed = sorted(dice.sample(sorted(items.items()), 75))
        twice = [(sku, dice.choice(sorted(set(items.values())))) for sku, _ in dice.sample(listed, 5)]
        rows = [
            (group, sku, f"Table {group}", dice.choice(("10", "20")), dice.choice((0, 7)))
            for sku, group in listed + twice
        ]
        feeds.append(build_csv(HEADERS, rows))
    return feeds


async def _import_feeds(service: InProcessService, feeds: list[bytes]) -> tuple[list[Any], list[Any], list[Any]]:
    """Import the feeds; return rows, events and problems."""
    source, problems = None, []
    for feed in feeds:
        run = await service.import_file(feed, source)
        assert run["status"] == "succeeded", run
        source = run["source"]
        problems.append(sorted(problem["detail"] for problem in run["problems"]))
    return await service.fetch_rows(STATE, source), await service.fetch_rows(EVENTS, source), problems


def _force_sequential_preparation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every chunk depend on the previous one, so that it is prepared again afterwards."""
    reconcile = ChunkWriter._reconcile

    async def touching(self: ChunkWriter, portion: ChunkPortion) -> None:
        await reconcile(self, portion)
        portion.dependency_keys |= {"everything"}

    monkeypatch.setattr(ChunkWriter, "_reconcile", touching)


@pytest.mark.parametrize("bucket_bytes", [100, 1 << 20])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in (1, 2))])
async def test_preparing_a_chunk_ahead_changes_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, bucket_bytes: int
) -> None:
    feeds = _build_feeds(random.Random(seed))
    monkeypatch.setattr(chunks, "BUCKET_BYTES", bucket_bytes)
    monkeypatch.setattr(chunks, "CHUNK_ROWS", {Stream.CATALOGUE: 8, Stream.STOCK: 8})
    async with open_service(tmp_path) as service:
        ahead = await _import_feeds(service, feeds)
        _force_sequential_preparation(monkeypatch)
        behind = await _import_feeds(service, feeds)
    assert len(ahead[0]) > 90
    assert ahead == behind


async def test_a_chunk_that_is_reconciled_again_counts_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reconcile, reconciled = ChunkWriter._reconcile, []

    async def merged_meanwhile(self: ChunkWriter, portion: ChunkPortion) -> None:
        await reconcile(self, portion)
        reconciled.append(portion)
        if len(reconciled) == 1:
            portion.merge_revision -= 1

    rows = [(f"G-{number}", f"S-{number}", "Table", "10", 1) for number in range(20)]
    async with open_service(tmp_path) as service:
        first = await service.import_file(build_csv(HEADERS, rows), None)
        monkeypatch.setattr(ChunkWriter, "_reconcile", merged_meanwhile)
        again = await service.import_file(
            build_csv(HEADERS, [("G-0", "S-0", "Desk", "10", 1), *rows[1:]]), first["source"]
        )
    assert len(reconciled) == 2
    assert (again["stats"]["unchanged"], again["stats"]["products_changed"]) == (19, 1)
