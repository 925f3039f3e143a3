"""Reads a demo feed as a run does: with its connector, the proposed mapping and normalising, without a store."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from connectors.sdk.spec import ConnectorSpec
from connectors.sdk.testing import FakeContext, read
from domain.catalogue.statements import ProductStatement, VariantStatement
from domain.ingestion.columns.plan import ReadPlan
from domain.ingestion.mapping.proposal import from_given, propose
from domain.ingestion.model import FeedSettings, FeedTable, HeaderMapping, Row
from domain.ingestion.normalise import normalise
from domain.ingestion.vocabulary.senses import score_header
from domain.kernel.problems import Problem


@dataclass(slots=True)
class Stated:
    """What a feed states: by product key, with the problems and the lines without any key."""

    rows: int = 0
    mapping: HeaderMapping | None = None
    products: dict[str, ProductStatement] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    keyless: list[int] = field(default_factory=list)

    @property
    def variants(self) -> list[VariantStatement]:
        """All variants."""
        return [variant for product in self.products.values() for variant in product.variants]

    def variant(self, key: str) -> VariantStatement:
        """The variant of that key."""
        return next(variant for variant in self.variants if variant.key == key)


def _mapping(table: Any, rows: list[Row], context: FeedSettings) -> HeaderMapping:
    if table.given is not None:
        return from_given(table.headers, table.given)
    samples = [["" if cell is None else str(cell) for cell in cells] for _, cells in rows[:50]]
    return propose(table.headers, samples, context)


@pytest.fixture(scope="session")
def state() -> Callable[..., Stated]:
    """Reads a feed's bytes."""

    def run(spec: ConnectorSpec, snapshot: bytes, config: Mapping[str, Any], stream: str = "catalogue") -> Stated:
        context = FeedSettings(currency="usd", stream=stream)
        ((table, rows),) = read(spec, FakeContext(config=config, score_header=score_header), snapshot)
        stated = Stated(
            rows=len(rows), mapping=_mapping(FeedTable(None, table.headers, iter(()), table.given), rows, context)
        )
        assert stated.mapping is not None
        plan = ReadPlan(stated.mapping, context)
        key_of = plan.product_key if stream == "catalogue" else plan.variant_key
        groups: dict[str, list[Row]] = {}
        for line, cells in rows:
            key = key_of(cells)
            if key is None:
                stated.keyless.append(line)
            else:
                groups.setdefault(key, []).append((line, cells))
        for key, kept in groups.items():
            stated.products[key], problems = normalise(key, kept, plan)
            stated.problems += problems
        return stated

    return run
