"""`joinery read FILE`: what would become of a feed, mapped and normalised on this machine without a server."""

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final, TextIO

from domain.ingestion.ports import ParseFailed, ReadingOrder

from adapters.files.spool import FileSpools
from adapters.pluggy.allowlist import AllowlistError
from adapters.pluggy.host import connect
from adapters.wire.codec import JsonCodec
from domain.catalogue.statements import ProductStatement
from domain.ingestion.model import FeedSettings, HeaderMapping
from domain.ingestion.reading import NeedsMapping
from domain.kernel.problems import Problem
from domain.runs.chunks import bucket_count, spool_room
from domain.runs.usecases.execution import size_of
from domain.runs.usecases.reading import SnapshotReading
from entrypoints.cli.errors import CommandError
from entrypoints.factories import product_version
from entrypoints.reader import NoNetwork
from entrypoints.settings import plugins_path

_SHOWN: Final = 20
_SPOOLED: Final = 64 << 20


async def read(options: argparse.Namespace) -> int:
    """Exit code 0 when the file could be read and its items have a key, 1 otherwise."""
    return await asyncio.to_thread(_read, options.file, options)


def _read(path: Path, options: argparse.Namespace) -> int:
    if not path.is_file():
        raise CommandError(f"There is no file {path}.")
    try:
        connectors = connect(plugins_path(os.environ), NoNetwork(), product_version=product_version())
    except AllowlistError as error:
        raise CommandError(str(error)) from error
    with tempfile.TemporaryDirectory(prefix="joinery-read-") as folder:
        order = _order(path, folder, options)

        def opened() -> SnapshotReading:
            return SnapshotReading(connectors, JsonCodec(), partial(FileSpools, limit=_SPOOLED), order)

        feed = _Feed(opened(), opened(), order)
        try:
            return (_print_json if options.json else _print_text)(feed, sys.stdout)
        except ParseFailed as failure:
            raise CommandError(f"{path.name} could not be read: {failure}") from failure
        finally:
            feed.close()


def _order(path: Path, folder: str, options: argparse.Namespace) -> ReadingOrder:
    settings = FeedSettings(
        currency=options.currency.lower() if options.currency else None,
        decimal=options.decimal,
        warehouse=options.warehouse,
        price_code=options.price_code,
        stream=options.stream,
    )
    given = {"format": options.format, "currency": settings.currency}
    size, packed = size_of(path)
    return ReadingOrder(
        snapshot=str(path),
        folder=folder,
        connector=options.connector,
        config={name: value for name, value in given.items() if value},
        stream=options.stream,
        settings=settings,
        buckets=bucket_count(size, packed=packed),
        room=spool_room(size, packed=packed),
    )


class _Feed:
    """A file being read: first what its columns mean, then its rows."""

    def __init__(self, heads: SnapshotReading, rows: SnapshotReading, order: ReadingOrder) -> None:
        self._heads, self._rows, self._order = heads, rows, order
        self.problems: list[Problem] = []
        self.told = 0
        self.failure: str | None = None
        self.rows = 0

    def mappings(self) -> Iterator[tuple[str | None, HeaderMapping]]:
        """Each table's name and what its columns mean. Raises ParseFailed."""
        return self._heads.mappings()

    def products(self) -> Iterator[ProductStatement]:
        """The products, one by one; `problems` and `failure` are whole after the last."""
        try:
            spooled = self._rows.spool()
        except NeedsMapping as failure:
            self.failure = str(failure)
            return
        self.rows, self.problems, self.told = spooled.rows, list(spooled.problems), spooled.problem_count
        for bucket in range(self._order.buckets):
            buckets = range(bucket, bucket + 1)
            keys = [mark.key for mark in self._rows.gather(buckets).fingerprints]
            found: list[Problem] = []
            yield from self._rows.statements(buckets, keys, found)
            self.told += len(found)
            self.problems += found

    def close(self) -> None:
        """Let go of what was put aside."""
        self._heads.close()
        self._rows.close()


def _mapping(sheet: str | None, mapping: HeaderMapping) -> dict[str, Any]:
    return {
        "sheet": sheet,
        "headers": list(mapping.headers),
        "columns": [
            {
                "position": column.position,
                "column": column.column,
                "field": column.field,
                "prefix": column.prefix,
                "settings": dict(column.settings),
                "tier": column.tier.value,
                "confidence": round(column.confidence, 3),
            }
            for column in mapping.columns
        ],
        "unmapped": [
            {"position": column.position, "column": column.column, "reason": column.reason.value}
            for column in mapping.unmapped
        ],
        "missing": list(mapping.missing),
    }


def _product(statement: ProductStatement) -> dict[str, Any]:
    return {
        "key": statement.key,
        "data": statement.data,
        "discontinued": statement.discontinued,
        "variants": [
            {
                "key": variant.key,
                "data": variant.data,
                "offers": [{"location": offer.location, **offer.data} for offer in variant.offers],
            }
            for variant in statement.variants
        ],
    }


def _problem(problem: Problem) -> dict[str, Any]:
    told = {
        "sheet": problem.sheet,
        "line": problem.line,
        "column": problem.column,
        "field": problem.field,
        "problem": problem.problem.value,
        "detail": problem.detail,
    }
    return {name: value for name, value in told.items() if value is not None}


def _print_json(feed: _Feed, out: TextIO) -> int:
    """One JSON object, written as it is read."""
    encode = JsonCodec().encode

    def text(value: Any) -> str:
        return encode(value).decode()

    out.write('{"object":"reading","mappings":[')
    out.writelines(
        ("," if number else "") + text(_mapping(sheet, mapping))
        for number, (sheet, mapping) in enumerate(feed.mappings())
    )
    out.write('],"products":[')
    out.writelines(
        (",\n" if number else "\n") + text(_product(statement)) for number, statement in enumerate(feed.products())
    )
    problems = ",\n".join(text(_problem(problem)) for problem in feed.problems)
    out.write(
        f'],\n"problems":[{problems}],"problem_count":{feed.told},"rows":{feed.rows},"failure":{text(feed.failure)}}}\n'
    )
    return 1 if feed.failure else 0


def _print_text(feed: _Feed, out: TextIO) -> int:
    """What a person wants to see first: columns, counts, the first problems."""
    for sheet, mapping in feed.mappings():
        out.write(f"{sheet or 'Columns'}\n")
        for column in mapping.columns:
            settings = " ".join(f"{name}={value}" for name, value in column.settings.items())
            title = " ".join(column.column.split())[:38]
            out.write(
                f"  {title:<40}{column.field:<32}{column.tier.value:<10}{column.confidence:>5.0%}  {settings}".rstrip()
                + "\n"
            )
        out.writelines(
            f"  {' '.join(left.column.split())[:38]:<40}{'-':<32}{left.reason.value}\n" for left in mapping.unmapped
        )
    products = variants = offers = 0
    for statement in feed.products():
        products += 1
        variants += len(statement.variants)
        offers += sum(len(variant.offers) for variant in statement.variants)
    if feed.failure:
        out.write(f"\n{feed.failure}\n")
        return 1
    out.write(
        f"\n{feed.rows:,} rows: {products:,} products, {variants:,} variants, {offers:,} offers; {feed.told:,} problems\n"
    )
    for problem in feed.problems[:_SHOWN]:
        place = ", ".join(
            filter(None, (problem.sheet, f"line {problem.line}" if problem.line else None, problem.column))
        )
        out.write(f"  {problem.problem.value:<18}{place}: {problem.detail}\n")
    if feed.told > _SHOWN:
        out.write(f"  … and {feed.told - _SHOWN:,} more; --json prints them all\n")
    return 0
