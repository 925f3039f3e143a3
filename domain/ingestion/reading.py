"""What reading a snapshot gives, before anything is held against the store."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from domain.catalogue.batch import RowFingerprint
from domain.catalogue.statements import ProductStatement
from domain.ingestion.model import HeaderMapping
from domain.kernel.problems import Problem


class NeedsMapping(Exception):
    """No table of the feed says which column names the item; a person must map the columns."""


class StockSheet(Exception):
    """The file states stock of items that the catalogue knows, and nothing about the items themselves."""


@dataclass(frozen=True, slots=True)
class SpooledRows:
    """What a snapshot holds, its rows put aside by bucket.

    `held` counts the rows of each bucket (long ones several times), `slots` are those of its keys (domain.runs.chunks), `places` the locations
    that its sheets can state offers at (None where the rows name them). Of `problem_count` problems, `problems` are the
    first.
    """

    rows: int
    held: Sequence[int]
    slots: Sequence[int]
    places: frozenset[str] | None
    problems: Sequence[Problem]
    problem_count: int


@dataclass(frozen=True, slots=True)
class Gathered:
    """The keys of some buckets: a fingerprint of each, the line it is first named on, and how many rows it has."""

    fingerprints: Sequence[RowFingerprint]
    lines: Sequence[int]
    rows: Sequence[int]


@dataclass(frozen=True, slots=True)
class Stated:
    """What a feed states under some keys, and what could not be read of it."""

    statements: Sequence[ProductStatement]
    problems: Sequence[Problem]


@dataclass(frozen=True, slots=True)
class Sample:
    """The first records of a snapshot, by column; `failure` tells why there are not more.

    `mapping` is what the first table's columns mean, `problems` what could not be read of the first rows.
    """

    records: Sequence[Mapping[str, Any]]
    failure: str | None = None
    mapping: HeaderMapping | None = None
    problems: Sequence[Problem] = ()
