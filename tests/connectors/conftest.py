"""Shared fixtures of connector tests: reading of bytes, and known header words."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from connectors.csv.connector import SPEC as CSV
from connectors.sdk import Limits, Table
from connectors.sdk.testing import FakeContext, parse_snapshot

KNOWN = {
    "sku", "item", "title", "name", "price", "msrp", "qty", "width", "depth", "height", "weight", "colour", "color",
    "collection", "upc", "description", "brand",
}  # fmt: skip

Tables = list[tuple[Table, list[tuple[int, list[Any]]]]]


def count_known_words(cells: Sequence[str]) -> int:
    """Return the number of cells that are known header words."""
    return sum(1 for cell in cells if cell.strip().lower() in KNOWN)


class Reader:
    """Reads bytes with the file connector; its reports are in `context.reports`."""

    def __init__(self) -> None:
        self.context = FakeContext(score_header=count_known_words)

    def __call__(self, content: bytes, *, limits: Limits | None = None, **config: Any) -> Tables:
        self.context.config = config
        if limits is not None:
            self.context.limits = limits
        return parse_snapshot(CSV, self.context, content)

    def read_table(self, content: bytes, **config: Any) -> tuple[tuple[str, ...], list[tuple[int, list[Any]]]]:
        """Return headers and rows of the only table."""
        ((table, rows),) = self(content, **config)
        return table.headers, rows


@pytest.fixture
def reader() -> Reader:
    """Create a reader."""
    return Reader()


@pytest.fixture
def records(reader: Reader) -> Callable[..., list[Mapping[str, Any]]]:
    """Return a function that reads the rows of the only table as dicts."""

    def run(content: bytes, **config: Any) -> list[Mapping[str, Any]]:
        headers, rows = reader.read_table(content, **config)
        return [dict(zip(headers, cells, strict=True)) for _, cells in rows]

    return run
