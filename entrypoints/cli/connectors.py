"""Commands for connectors and probes without a server: installed plugins, parsing of a file, check of a website."""

import json as jsons
import os
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Literal

from adapters.files.spool import FileSpools
from adapters.http.client import GuardedClient
from adapters.http.web import HttpWeb
from adapters.markup.documents import MarkupDocuments
from adapters.pluggy.allowlist import AllowlistError
from adapters.pluggy.host import PluggyConnectors, connect
from adapters.wire.codec import JsonCodec
from adapters.wire.probes import REPORT
from connectors.sdk.context import HttpClient
from domain.catalogue.statements import ProductStatement
from domain.ingestion.model import FeedSettings, HeaderMapping
from domain.ingestion.ports import ParseFailed, ReadingOrder
from domain.ingestion.reading import NeedsMapping
from domain.kernel.addresses import refusal
from domain.kernel.clock import now
from domain.kernel.problems import Problem
from domain.kernel.resource import View
from domain.kernel.tenancy import Tenant
from domain.probes.usecases.execution import Takable
from domain.probes.usecases.probing import Outcome, ProbeFailed, Probing
from domain.probes.usecases.visiting import Limits, Visit
from domain.runs.usecases.execution import spool_bounds
from domain.runs.usecases.reading import SnapshotReading
from entrypoints.errors import CommandError
from entrypoints.factories import product_version
from entrypoints.operations.validation import SchemaFaults
from entrypoints.reader import NoNetwork
from entrypoints.settings import plugins_path, private_hosts_of

_MAX_SHOWN = 20
_SPOOL_BYTES = 64 << 20


def load_connectors(http: HttpClient) -> PluggyConnectors:
    """Load the connectors that the settings allow.

    Raises:
        CommandError: The list of allowed plugins is unreadable.
    """
    try:
        return connect(plugins_path(os.environ), http, product_version=product_version())
    except AllowlistError as error:
        raise CommandError(str(error)) from error


async def plugins(what: Literal["list", "check"], /, *, json: bool = False) -> int:
    """List or check connector plugins; `check` exits with 1 if a listed plugin does not load.

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
            print(f"{line} {report.reason or ''}".rstrip())
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
    """Test a feed: map and normalise a file, without a server. Exits with 1 if its items have no key.

    Args:
        file: CSV, TSV, Excel, JSON, JSON Lines, XML, or one of them in a zip or gzip
        json: print mapping, products and problems as one JSON object
        currency: default currency of prices (ISO 4217; with usd, sizes without unit are inches)
        decimal: the decimal mark
        stream: the stream that the file contains
        format: the file's format, if not recognisable from its content
        connector: the connector that reads the file (csv reads all files)
        warehouse: the location of stock without one
        price_code: the price column to use if there are several
    """
    if not file.is_file():
        raise CommandError(f"The file {file} does not exist.")
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
        spools = partial(FileSpools, limit=_SPOOL_BYTES)
        heads, rows = (SnapshotReading(connectors, JsonCodec(), spools, order) for _ in range(2))
        try:
            return (_print_json if json else _print_text)(_Feed(heads, rows, order))
        except ParseFailed as failure:
            raise CommandError(f"{file.name} could not be read: {failure}") from failure
        finally:
            heads.close()
            rows.close()


class _Feed:
    """A feed file that is parsed in two passes: column mapping, then rows."""

    def __init__(self, heads: SnapshotReading, rows: SnapshotReading, order: ReadingOrder) -> None:
        self._heads, self._rows, self._order = heads, rows, order
        self.problems: list[Problem] = []
        self.problem_count = 0
        self.failure: str | None = None
        self.rows = 0

    def mappings(self) -> Iterator[tuple[str | None, HeaderMapping]]:
        """Yield each table's name and column mapping. Raises ParseFailed."""
        return self._heads.mappings()

    def products(self) -> Iterator[ProductStatement]:
        """Yield the products; `problems` and `failure` are complete after the last one."""
        try:
            spooled = self._rows.spool()
        except NeedsMapping as failure:
            self.failure = str(failure)
            return
        self.rows, self.problems, self.problem_count = spooled.rows, list(spooled.problems), spooled.problem_count
        for bucket in range(self._order.buckets):
            buckets = range(bucket, bucket + 1)
            keys = [mark.key for mark in self._rows.gather(buckets).fingerprints]
            problems: list[Problem] = []
            yield from self._rows.statements(buckets, keys, problems)
            self.problem_count += len(problems)
            self.problems += problems


def _mapping_json(sheet: str | None, mapping: HeaderMapping) -> dict[str, Any]:
    return {
        "sheet": sheet,
        "headers": mapping.headers,
        "columns": [asdict(column) | {"confidence": round(column.confidence, 3)} for column in mapping.columns],
        "unmapped": [asdict(column) for column in mapping.unmapped],
        "missing": mapping.missing,
    }


def _product_json(statement: ProductStatement) -> dict[str, Any]:
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


def _problem_json(problem: Problem) -> dict[str, Any]:
    names = ("sheet", "line", "column", "field", "problem", "detail")
    return {name: value for name in names if (value := getattr(problem, name)) is not None}


def _print_json(feed: _Feed) -> int:
    """Print one JSON object; products are printed while they are read."""

    def text(value: Any) -> str:
        return JsonCodec().encode(value).decode()

    mappings = text([_mapping_json(sheet, mapping) for sheet, mapping in feed.mappings()])
    print(f'{{"object":"reading","mappings":{mappings},"products":[', end="")
    for number, statement in enumerate(feed.products()):
        print(",\n" if number else "\n", text(_product_json(statement)), sep="", end="")
    rest = {"problems": [_problem_json(problem) for problem in feed.problems], "problem_count": feed.problem_count}
    print("],", text({**rest, "rows": feed.rows, "failure": feed.failure}).removeprefix("{"), sep="\n")
    return 1 if feed.failure else 0


def _print_text(feed: _Feed) -> int:
    """Print columns, counts and the first problems."""
    for sheet, mapping in feed.mappings():
        print(sheet or "Columns")
        for column in mapping.columns:
            settings = " ".join(f"{name}={value}" for name, value in column.settings.items())
            description = f"{column.field:<32}{column.tier.value:<10}{column.confidence:>5.0%}  {settings}"
            print(f"  {_title(column.column):<40}{description}".rstrip())
        for unmapped in mapping.unmapped:
            print(f"  {_title(unmapped.column):<40}{'-':<32}{unmapped.reason.value}")
    products = variants = offers = 0
    for statement in feed.products():
        products += 1
        variants += len(statement.variants)
        offers += sum(len(variant.offers) for variant in statement.variants)
    if feed.failure:
        print(f"\n{feed.failure}")
        return 1
    print(
        f"\n{feed.rows:,} rows: {products:,} products, {variants:,} variants, {offers:,} offers; {feed.problem_count:,} problems"
    )
    for problem in feed.problems[:_MAX_SHOWN]:
        places = (problem.sheet, f"line {problem.line}" if problem.line else None, problem.column)
        print(f"  {problem.problem.value:<18}{', '.join(filter(None, places))}: {problem.detail}")
    if feed.problem_count > _MAX_SHOWN:
        print(f"  … and {feed.problem_count - _MAX_SHOWN:,} more; use --json to print them all")
    return 0


def _title(header: str) -> str:
    return " ".join(header.split())[:38]


async def probe(url: str, /, *, json: bool = False) -> int:
    """Check a website as a source probe does, without a server; print the report and the proposed source.

    Args:
        json: print one JSON object
    """
    allowed = private_hosts_of(os.environ)
    if reason := refusal(url, allowed):
        raise CommandError(reason)
    async with GuardedClient(allowed_hosts=allowed, version=product_version()) as http:
        takes = Takable(load_connectors(http), SchemaFaults())
        documents, limits = MarkupDocuments(), Limits()
        try:
            outcome = await Probing(Visit(HttpWeb(http), documents, limits), documents, limits, takes).run(url)
        except ProbeFailed as failure:
            raise CommandError(str(failure)) from failure
    if json:
        view = View(Tenant("", livemode=True), now())
        print(jsons.dumps({"report": REPORT.render(outcome.report, view), "proposal": outcome.proposal}, indent=2))
    else:
        for line in _format_report(outcome):
            print("".join(letter if letter.isprintable() else "?" for letter in line))
    return 0


def _format_report(outcome: Outcome) -> Iterator[str]:
    report = outcome.report
    delay = report.robots.crawl_delay_seconds
    yield f"site        {report.final_url}"
    yield f"robots.txt  {report.robots.state}" + (f", {delay:g} seconds between requests" if delay else "")
    yield f"platform    {report.platform} ({report.confidence:.0%} confidence)"
    if report.wall:
        yield f"barrier     {report.wall.kind}: {report.wall.detail}"
    if report.feed:
        counted = report.feed.total if report.feed.total is not None else report.feed.products
        yield f"feed        {report.feed.url} status {report.feed.status}, products: {counted}"
    if report.sitemap:
        more = " and more" if report.sitemap.truncated else ""
        yield f"sitemaps    {len(report.sitemap.read)} read, {report.sitemap.product_pages}{more} pages of products"
    if report.sample:
        shares = [f"{name} {share:.0%}" for name, share in report.sample.coverage.items() if share]
        yield f"sample      {len(report.sample.pages)} pages; JSON-LD: {', '.join(shares) or 'none'}"
    yield f"requests    {report.requests}"
    for url in report.disallowed:
        yield f"disallowed  {url}"
    for note in report.notes:
        yield f"note        {note}"
    yield f"estimate    {report.estimate.effort} effort, by {report.estimate.kind}: {' '.join(report.estimate.reasons)}"
    if outcome.proposal:
        yield f"proposal    {jsons.dumps(outcome.proposal)}"
