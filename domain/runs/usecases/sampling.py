"""The first rows of a snapshot, as a test of a source shows them: the records, their columns' meaning, what is wrong."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from domain.ingestion.columns.plan import ReadPlan
from domain.ingestion.model import FeedSettings, FeedTable, Group, HeaderMapping, Row
from domain.ingestion.normalise import normalise
from domain.ingestion.ports import ParseFailed
from domain.ingestion.reading import Sample
from domain.ingestion.records import from_record
from domain.kernel.problems import Problem, ProblemKind
from domain.runs.usecases.spooling import SAMPLES, mapping_of


def sample_of_records(records: Iterable[Mapping[str, Any]], count: int, settings: FeedSettings) -> Sample:
    """The first of pushed records."""
    head = list(islice(records, SAMPLES))
    found = [from_record(record, settings, line)[1] for line, record in enumerate(head, start=1)]
    return Sample(head[:count], problems=[problem for problems in found for problem in problems])


def sample_of_tables(tables: Iterator[FeedTable], count: int, settings: FeedSettings) -> Sample:
    """The first rows of the first tables; a mapping and problems of the first table alone."""
    records: list[Mapping[str, Any]] = []
    mapping: HeaderMapping | None = None
    problems: list[Problem] = []
    failure: str | None = None
    try:
        for table in tables:
            head: list[Row] = []
            try:
                head.extend(islice(table.rows, SAMPLES if mapping is None else count))
            except ParseFailed as error:
                failure = str(error)
            named = (
                {h: cell for h, cell in zip(table.headers, cells, strict=False) if cell is not None}
                for _, cells in head
            )
            records += islice(named, count - len(records))
            if mapping is None:
                mapping = mapping_of(table, head, settings)
                problems = _problems(table, head, mapping, settings)
            if len(records) == count or failure is not None:
                break
    except ParseFailed as error:
        failure = str(error)
    return Sample(records, None if len(records) == count else failure, mapping, problems)


def _problems(table: FeedTable, head: list[Row], mapping: HeaderMapping, settings: FeedSettings) -> list[Problem]:
    if mapping.missing:
        detail = "No column could be read as the item's key."
        return [Problem(name, ProblemKind.MISSING, detail, sheet=table.sheet) for name in mapping.missing]
    plan = ReadPlan(mapping, settings)
    key_of = plan.product_key if settings.stream == "catalogue" else plan.variant_key
    groups: dict[str, list[Row]] = {}
    problems: list[Problem] = []
    for line, cells in head:
        if (key := key_of(cells)) is None:
            detail = "The row names no item: no SKU, key, GTIN or MPN."
            problems.append(Problem("sku", ProblemKind.MISSING, detail, line=line, sheet=table.sheet))
        else:
            groups.setdefault(key, []).append((line, cells))
    for key, rows in groups.items():
        _, found = normalise(Group(key, rows, table.sheet), plan)
        problems += [replace(problem, external_id=key) for problem in found]
    return problems
