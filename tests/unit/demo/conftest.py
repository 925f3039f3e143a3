"""Parsing of a demo feed as in a run, with connector, proposed mapping and normalisation, without a store."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from connectors.sdk.spec import ConnectorSpec
from connectors.sdk.testing import FakeContext, parse_snapshot
from domain.catalogue.statements import ProductStatement, VariantStatement
from domain.ingestion.columns.plan import ReadPlan
from domain.ingestion.mapping.proposal import map_declared_fields, propose_column_mapping
from domain.ingestion.model import FeedSettings, FeedTable, HeaderMapping, Row
from domain.ingestion.normalisation import normalise_rows
from domain.ingestion.vocabulary.header_meanings import count_known_headers
from domain.kernel.problems import Problem


@dataclass(slots=True)
class ParsedFeed:
    """Statements of a feed by product key, with the problems and the lines without a key."""

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
        """Return the variant with the key."""
        return next(variant for variant in self.variants if variant.key == key)


def _create_mapping(table: Any, rows: list[Row], context: FeedSettings) -> HeaderMapping:
    if table.declared_fields is not None:
        return map_declared_fields(table.headers, table.declared_fields)
    samples = [["" if cell is None else str(cell) for cell in cells] for _, cells in rows[:50]]
    return propose_column_mapping(table.headers, samples, context)


@pytest.fixture(scope="session")
def parse_feed() -> Callable[..., ParsedFeed]:
    """Return a function that parses the bytes of a feed."""

    def parse(spec: ConnectorSpec, snapshot: bytes, config: Mapping[str, Any], stream: str = "catalogue") -> ParsedFeed:
        context = FeedSettings(currency="usd", stream=stream)
        ((table, rows),) = parse_snapshot(spec, FakeContext(config=config, score_header=count_known_headers), snapshot)
        feed = ParsedFeed(
            rows=len(rows),
            mapping=_create_mapping(FeedTable(None, table.headers, iter(()), table.fields), rows, context),
        )
        assert feed.mapping is not None
        plan = ReadPlan(feed.mapping, context)
        read_key = plan.read_product_key if stream == "catalogue" else plan.read_variant_key
        groups: dict[str, list[Row]] = {}
        for line, cells in rows:
            key = read_key(cells)
            if key is None:
                feed.keyless.append(line)
            else:
                groups.setdefault(key, []).append((line, cells))
        for key, members in groups.items():
            feed.products[key], problems = normalise_rows(key, members, plan)
            feed.problems += problems
        return feed

    return parse
