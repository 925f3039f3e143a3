"""Commands that need no server: list connector plugins, read a file."""

import json as jsons
import os
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Literal

from adapters.api_json.codec import JsonCodec
from adapters.files.spool import FileSpools
from adapters.pluggy.allowlist import AllowlistError
from adapters.pluggy.host import PluggyConnectors, load_connectors
from connectors.sdk.context import HttpClient
from domain.catalogue.statements import ProductStatement
from domain.ingestion.model import FeedSettings, HeaderMapping
from domain.ingestion.ports import ParseFailed, ReadRequest
from domain.ingestion.snapshot_results import MappingRequired
from domain.kernel.problems import Problem
from domain.runs.usecases.snapshot_reader import SnapshotReader, compute_spool_bounds
from entrypoints.errors import CommandError
from entrypoints.reader import RejectingHttpClient
from entrypoints.settings import get_release_version, read_plugins_path

_MAX_SHOWN = 20
_SPOOL_BYTES = 64 << 20


def load_allowed_connectors(http: HttpClient) -> PluggyConnectors:
    """Load the connectors that the plugin allowlist permits.

    Raises:
        CommandError: The plugin allowlist is unreadable.
    """
    try:
        return load_connectors(read_plugins_path(os.environ), http, release_version=get_release_version())
    except AllowlistError as error:
        raise CommandError(str(error)) from error


def list_plugins(action: Literal["list", "check"], /, *, json: bool = False) -> int:
    """List or check connector plugins.

    Args:
        action: List the plugins, or check them and exit with 1 if a plugin on the allowlist does not load.
        json: Print a JSON array.
    """
    reports = load_allowed_connectors(RejectingHttpClient()).list_reports()
    if json:
        print(jsons.dumps([asdict(report) for report in reports], default=sorted))
    else:
        for report in reports:
            line = f"{report.state:<10} {report.plugin:<28} {', '.join(report.connectors)}"
            print(f"{line} {report.reason or ''}".rstrip())
    return 1 if action == "check" and any(report.state == "broken" for report in reports) else 0


def read_file(
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
    """Map and normalise a file, without a server. Exit with 1 if its items have no key.

    Args:
        file: Path of a CSV, TSV, Excel, JSON, JSON Lines or XML file, or of one in a zip or gzip.
        json: Print mapping, products and problems as one JSON object.
        currency: Default currency of prices (ISO 4217). With usd, sizes without unit are inches.
        decimal: Decimal mark of numbers.
        stream: Stream that the file contains.
        format: Format of the file (default: recognised from the content).
        connector: Connector that reads the file. csv reads all formats.
        warehouse: Location of stock whose rows state no location.
        price_code: Use the price column whose header contains this text, if there are several.
    """
    if not file.is_file():
        raise CommandError(f"The file {file} does not exist.")
    connectors = load_allowed_connectors(RejectingHttpClient())
    currency = currency.lower() if currency else None
    buckets, room = compute_spool_bounds(file)
    with tempfile.TemporaryDirectory(prefix="joinery-read-") as folder:
        order = ReadRequest(
            snapshot=str(file),
            folder=folder,
            connector=connector,
            config={name: value for name, value in (("format", format), ("currency", currency)) if value},
            stream=stream,
            settings=FeedSettings(
                currency=currency, decimal=decimal, warehouse=warehouse, price_code=price_code, stream=stream
            ),
            buckets=buckets,
            max_bytes=room,
        )
        spools = partial(FileSpools, max_memory_bytes=_SPOOL_BYTES)
        heads, rows = (SnapshotReader(connectors, JsonCodec(), spools, order) for _ in range(2))
        try:
            return (_print_json if json else _print_text)(_Feed(heads, rows, order))
        except ParseFailed as failure:
            raise CommandError(f"{file.name} could not be read: {failure}") from failure
        finally:
            heads.close()
            rows.close()


class _Feed:
    """Feed file that is parsed twice: first for the column mappings, then for the products.

    Attributes:
        problems: The problems, without those that the reader counts but does not list.
        problem_count: The number of all problems, listed or not.
        failure: The reason why no products could be read, or None.
        rows: The number of rows.
    """

    def __init__(self, mapping_reader: SnapshotReader, row_reader: SnapshotReader, order: ReadRequest) -> None:
        self._mapping_reader, self._row_reader, self._order = mapping_reader, row_reader, order
        self.problems: list[Problem] = []
        self.problem_count = 0
        self.failure: str | None = None
        self.rows = 0

    def read_mappings(self) -> Iterator[tuple[str | None, HeaderMapping]]:
        """Yield each table's name and column mapping. Raises ParseFailed."""
        return self._mapping_reader.propose_mappings()

    def read_products(self) -> Iterator[ProductStatement]:
        """Yield the products; the attributes are complete when the last product has been yielded."""
        try:
            spooled = self._row_reader.spool()
        except MappingRequired as failure:
            self.failure = str(failure)
            return
        self.rows, self.problems, self.problem_count = spooled.row_count, list(spooled.problems), spooled.problem_count
        for bucket in range(self._order.buckets):
            buckets = range(bucket, bucket + 1)
            keys = [mark.key for mark in self._row_reader.load_keys(buckets).fingerprints]
            problems: list[Problem] = []
            yield from self._row_reader.load_statements(buckets, keys, problems)
            self.problem_count += len(problems)
            self.problems += problems


def _build_mapping_json(sheet: str | None, mapping: HeaderMapping) -> dict[str, Any]:
    """Return a table's column mapping as JSON; `sheet` is the name of the table."""
    return {
        "sheet": sheet,
        "headers": mapping.headers,
        "columns": [asdict(column) | {"confidence": round(column.confidence, 3)} for column in mapping.columns],
        "unmapped": [asdict(column) for column in mapping.unmapped],
        "missing": mapping.missing,
    }


def _build_product_json(statement: ProductStatement) -> dict[str, Any]:
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


def _build_problem_json(problem: Problem) -> dict[str, Any]:
    names = ("sheet", "line", "column", "field", "problem", "detail", "external_id", "value")
    return {name: value for name in names if (value := getattr(problem, name)) is not None}


def _print_json(feed: _Feed) -> int:
    """Print mappings, products and problems as one JSON object; return the exit code. Products are printed while they are read."""

    def text(value: Any) -> str:
        return JsonCodec().encode(value).decode()

    mappings = text([_build_mapping_json(sheet, mapping) for sheet, mapping in feed.read_mappings()])
    print(f'{{"object":"reading","mappings":{mappings},"products":[', end="")
    for number, statement in enumerate(feed.read_products()):
        print(",\n" if number else "\n", text(_build_product_json(statement)), sep="", end="")
    rest = {
        "problems": [_build_problem_json(problem) for problem in feed.problems],
        "problem_count": feed.problem_count,
    }
    print("],", text({**rest, "rows": feed.rows, "failure": feed.failure}).removeprefix("{"), sep="\n")
    return 1 if feed.failure else 0


def _print_text(feed: _Feed) -> int:
    """Print the column mappings, the number of items and the first problems; return the exit code."""
    for sheet, mapping in feed.read_mappings():
        print(sheet or "Columns")
        for column in mapping.columns:
            settings = " ".join(f"{name}={value}" for name, value in column.settings.items())
            description = f"{column.field:<32}{column.tier.value:<10}{column.confidence:>5.0%}  {settings}"
            print(f"  {_shorten_header(column.column):<40}{description}".rstrip())
        for unmapped in mapping.unmapped:
            print(f"  {_shorten_header(unmapped.column):<40}{'-':<32}{unmapped.reason.value}")
    products = variants = offers = 0
    for statement in feed.read_products():
        products += 1
        variants += len(statement.variants)
        offers += sum(len(variant.offers) for variant in statement.variants)
    if feed.failure:
        print(f"\n{feed.failure}")
        return 1
    print(
        f"\nrows {feed.rows:,}, products {products:,}, variants {variants:,}, offers {offers:,}, problems {feed.problem_count:,}"
    )
    for problem in feed.problems[:_MAX_SHOWN]:
        places = (problem.sheet, f"line {problem.line}" if problem.line else None, problem.column)
        print(f"  {problem.problem.value:<18}{', '.join(filter(None, places))}: {problem.detail}")
    if feed.problem_count > _MAX_SHOWN:
        print(f"  … and {feed.problem_count - _MAX_SHOWN:,} more; use --json to print them all")
    return 0


def _shorten_header(header: str) -> str:
    """Return a header in one line of at most 38 characters."""
    return " ".join(header.split())[:38]
