"""Catalogues of invented vendors, matched like by a worker, with the pairs in a list."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from benchmarks.generated_furniture import FurnitureItem
from domain.catalogue.model import Product
from domain.jobs.model import build_lane_name
from domain.jobs.ports import JobStore
from domain.jobs.usecases.lane_processor import LaneProcessor
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from domain.matching.index import MATCHING_JOB, MATCHING_LANE, create_matching_job
from domain.matching.model import ScoredPair
from domain.matching.ports import MatchIndexStore
from domain.matching.usecases.matching_stage import MatchingJob
from ports.unit_of_work import Tx
from tests.support import builders
from tests.support.backend import Backend

LEASE = timedelta(seconds=10)


@dataclass
class PairRecorder:
    """Recorder of the stored pairs by their variants; `batches` are in order."""

    pairs: dict[tuple[str, str], ScoredPair] = field(default_factory=dict)
    batches: list[list[str]] = field(default_factory=list)

    async def store_scores(self, tx: Tx, matched_variants: Sequence[str], scored_pairs: Sequence[ScoredPair]) -> None:
        """Replace all pairs of the variants."""
        self.batches.append(list(matched_variants))
        own = set(matched_variants)
        self.pairs = {key: pair for key, pair in self.pairs.items() if own.isdisjoint(key)}
        self.pairs |= {(pair.left, pair.right): pair for pair in scored_pairs}


def _hundredths(text: str, unit: str) -> dict[str, Any]:
    value = float(text)
    return {
        "hundredths_in": round(value * (100 if unit == "in" else 100 / 2.54)),
        "given": {"value": value, "unit": unit},
    }


def build_variant_data(texts: Mapping[str, str]) -> dict[str, Any]:
    """Return VariantData with the texts of an invented vendor."""
    data: dict[str, Any] = {name: texts[name] for name in ("gtin", "mpn", "colour") if name in texts}
    unit = texts["dim_unit"]
    sides = {name: _hundredths(texts[name], unit) for name in ("width", "depth", "height") if name in texts}
    return data | ({"dimensions": sides} if sides else {})


def build_products(source: str, things: Sequence[tuple[str, FurnitureItem, Mapping[str, str]]]) -> list[Product]:
    """Return the products of a source; items of one family are variants of one product."""
    made: dict[str, Product] = {}
    for key, thing, texts in things:
        family = f"{thing.name} {thing.kind}"
        product = made.get(family)
        if product is None:
            data = {"title": f"{thing.name} {thing.kind}"} | ({"brand": texts["brand"]} if "brand" in texts else {})
            product = made[family] = builders.product(source, "cat_0000000000000000000001", family, data=data)
        data = {"title": texts["title"], **build_variant_data(texts)}
        variant = builders.variant(product, key, data=data)
        if "price" in texts:
            builders.offer(
                variant,
                data={"currency": "usd", "price": round(100 * float(texts["price"])), "availability": "in_stock"},
            )
    return list(made.values())


async def match_queued_variants(
    backend: Backend, tenant: Tenant, recorder: PairRecorder | None = None, **sizes: int
) -> PairRecorder:
    """Match the queued variants, like a worker after a run."""
    recorder = recorder or PairRecorder()
    async with backend.uow.begin(tenant, builders.CALL) as tx:
        await tx[JobStore].add(create_matching_job(tenant))
    drain = LaneProcessor(
        backend.dispatch, {MATCHING_JOB: MatchingJob(backend.uow, recorder, LEASE, **sizes)}, lease=LEASE
    )
    await asyncio.wait_for(drain.process_lane(build_lane_name(tenant.org, MATCHING_LANE)), 60)
    async with backend.uow.begin_reading(tenant) as tx:
        assert await tx[MatchIndexStore].is_queue_empty()
    return recorder


def build_source_ids(count: int) -> list[str]:
    """Return IDs of sources in ascending order."""
    return sorted(new_id("src") for _ in range(count))
