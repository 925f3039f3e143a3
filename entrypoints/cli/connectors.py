"""Connectors tried on this machine, without a server: which load, and what they make of a file."""

import json as jsons
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, TextIO

from adapters.files.spool import FileSpools
from adapters.http.client import GuardedClient
from adapters.pluggy.allowlist import AllowlistError
from adapters.pluggy.host import PluggyConnectors, connect
from adapters.wire.codec import JsonCodec
from connectors.sdk.context import HttpClient
from domain.catalogue.statements import ProductStatement
from domain.ingestion.model import FeedSettings, HeaderMapping
from domain.ingestion.ports import ParseFailed, ReadingOrder
from domain.ingestion.reading import NeedsMapping
from domain.kernel.problems import Problem
from domain.runs.usecases.execution import spool_bounds
from domain.runs.usecases.reading import SnapshotReading
from entrypoints.cli.errors import CommandError
from entrypoints.factories import product_version
from entrypoints.reader import NoNetwork
from entrypoints.settings import plugins_path

_SHOWN: Final = 20
_SPOOLED: Final = 64 << 20


def load_connectors(http: HttpClient) -> PluggyConnectors:
    """Load the connectors that the settings allow.

    Raises:
        CommandError: The list of allowed plugins cannot be read.
    """
    try:
        return connect(plugins_path(os.environ), http, product_version=product_version())
    except AllowlistError as error:
        raise CommandError(str(error)) from error


async def plugins(what: Literal["list", "check"], /, *, json: bool = False) -> int:
    """List or check connector plugins; `check` exits with 1 when a listed plugin does not load.

    Args:
        json: print JSON
    """
    async with GuardedClient() as http:
        reports = load_connectors(http).report()
    if json:
        print(jsons.dumps([asdict(report) for report in reports], default=sorted))
    else:
        for report in reports:
            line = f"{report.state:<10} {report.plugin:<28} {', '.join(report.connectors)}"
            print(f"{line} {report.reason or report.note or ''}".rstrip())
    return 1 if what == "check" and any(report.state == "broken" for report in reports) else 0


def read(
    file: Path,
    /,
    *,
    json: bool = False,
    currency: str | None = None,
    decimal: Literal["dot", "comma", "auto"] = "auto",
    stream: Literal["catalogue", "stock"] = "catalogue",
    format: str | None = None,
    connector: str = "csv",
    warehouse: str | None = None,
    price_code: str | None = None,
) -> int:
    """Try a feed: map and normalise a file, without a server. Exits with 1 when its items have no key.

    Args:
        file: CSV, TSV, Excel, JSON, JSON Lines, XML, or one of them in a zip or gzip
        json: print mapping, products and problems as one JSON object
        currency: of prices that name none (ISO 4217; usd also reads bare sizes as inches)
        decimal: the decimal mark
        stream: what the file states
        format: the file's format, where its content does not tell
        connector: what reads the file (csv reads all files)
        warehouse: the location of stock that names none
        price_code: which price column to take where there are several
    """
    if not file.is_file():
        raise CommandError(f"There is no file {file}.")
    connectors = load_connectors(NoNetwork())
    currency = currency.lower() if currency else None
    buckets, room = spool_bounds(file)
    with tempfile.TemporaryDirectory(prefix="joinery-read-") as folder:
        order = ReadingOrder(
            snapshot=str(file),
            folder=folder,
            connector=connector,
            config={name: value for name, value in (("format", format), ("currency", currency)) if value},
            stream=stream,
            settings=FeedSettings(
                currency=currency, decimal=decimal, warehouse=warehouse, price_code=price_code, stream=stream
            ),
            buckets=buckets,
            room=room,
        )
        spools = partial(FileSpools, limit=_SPOOLED)
        heads, rows = (SnapshotReading(connectors, JsonCodec(), spools, order) for _ in range(2))
        try:
            return (_print_json if json else _print_text)(_Feed(heads, rows, order), sys.stdout)
        except ParseFailed as failure:
            raise CommandError(f"{file.name} could not be read: {failure}") from failure
        finally:
            heads.close()
            rows.close()


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


def _mapping(sheet: str | None, mapping: HeaderMapping) -> dict[str, Any]:
    return {
        "sheet": sheet,
        "headers": mapping.headers,
        "columns": [asdict(column) | {"confidence": round(column.confidence, 3)} for column in mapping.columns],
        "unmapped": [asdict(column) for column in mapping.unmapped],
        "missing": mapping.missing,
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
    names = ("sheet", "line", "column", "field", "problem", "detail")
    return {name: value for name in names if (value := getattr(problem, name)) is not None}


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
