"""Invented vendors in a catalogue, and matching them as a worker does, its pairs kept in a list."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from benchmarks.habits import Thing
from domain.catalogue.model import Product
from domain.jobs.model import lane_of
from domain.jobs.ports import JobStore
from domain.jobs.usecases.draining import Drain
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from domain.matching.index import LANE, MATCH, matching
from domain.matching.model import ScoredPair
from domain.matching.ports import MatchIndexStore
from domain.matching.usecases.matching_stage import MatchingStage
from ports.unit_of_work import Tx
from tests.support import builders
from tests.support.backend import Backend

LEASE = timedelta(seconds=10)


@dataclass
class Told:
    """Offers that are remembered: the pairs by their variants, as they are kept; `batches` in their order."""

    pairs: dict[tuple[str, str], ScoredPair] = field(default_factory=dict)
    batches: list[list[str]] = field(default_factory=list)

    async def offer(self, tx: Tx, matched: Sequence[str], scored: Sequence[ScoredPair]) -> None:
        """Keep the pairs in place of all that there are of these variants."""
        self.batches.append(list(matched))
        own = set(matched)
        self.pairs = {key: pair for key, pair in self.pairs.items() if own.isdisjoint(key)}
        self.pairs |= {(pair.left, pair.right): pair for pair in scored}


def _hundredths(text: str, unit: str) -> dict[str, Any]:
    value = float(text)
    return {
        "hundredths_in": round(value * (100 if unit == "in" else 100 / 2.54)),
        "given": {"value": value, "unit": unit},
    }


def variant_data(told: Mapping[str, str]) -> dict[str, Any]:
    """VariantData of an invented vendor's texts."""
    data: dict[str, Any] = {name: told[name] for name in ("gtin", "mpn", "colour") if name in told}
    unit = told["dim_unit"]
    sides = {name: _hundredths(told[name], unit) for name in ("width", "depth", "height") if name in told}
    return data | ({"dimensions": sides} if sides else {})


def products_of(source: str, things: Sequence[tuple[str, Thing, Mapping[str, str]]]) -> list[Product]:
    """A source's products: things of one family are variants of one product, keyed as told."""
    made: dict[str, Product] = {}
    for key, thing, told in things:
        family = f"{thing.name} {thing.kind}"
        product = made.get(family)
        if product is None:
            data = {"title": f"{thing.name} {thing.kind}"} | ({"brand": told["brand"]} if "brand" in told else {})
            product = made[family] = builders.product(source, "cat_0000000000000000000001", family, data=data)
        data = {"title": told["title"], **variant_data(told)}
        variant = builders.variant(product, key, data=data)
        if "price" in told:
            builders.offer(
                variant,
                data={"currency": "usd", "price": round(100 * float(told["price"])), "availability": "in_stock"},
            )
    return list(made.values())


async def match(backend: Backend, tenant: Tenant, told: Told | None = None, **sizes: int) -> Told:
    """Match what waits, as a worker does once a run has ended."""
    told = told or Told()
    async with backend.uow.begin(tenant, builders.CALL) as tx:
        await tx[JobStore].add(matching(tenant))
    drain = Drain(backend.dispatch, {MATCH: MatchingStage(backend.uow, told, LEASE, **sizes)}, lease=LEASE)
    await asyncio.wait_for(drain.drain(lane_of(tenant.org, LANE)), 60)
    async with backend.uow.read(tenant) as tx:
        assert await tx[MatchIndexStore].idle()
    return told


def sources(count: int) -> list[str]:
    """Ids of sources in their order."""
    return sorted(new_id("src") for _ in range(count))
