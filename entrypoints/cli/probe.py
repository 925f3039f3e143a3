"""`joinery probe URL`: looks at a website as a source probe does, without a server, and prints what it found."""

import argparse
import json
import os
from collections.abc import Iterator

from domain.kernel.resource import View

from adapters.http.client import GuardedClient
from adapters.http.web import HttpWeb
from adapters.markup.documents import MarkupDocuments
from adapters.pluggy.allowlist import AllowlistError
from adapters.pluggy.host import connect
from adapters.wire.probes import REPORT
from domain.kernel.addresses import refusal
from domain.kernel.clock import now
from domain.kernel.tenancy import Tenant
from domain.probes.model import Report
from domain.probes.usecases.execution import Takable
from domain.probes.usecases.probing import Outcome, ProbeFailed, Probing
from domain.probes.usecases.visiting import Limits, Visit
from entrypoints.cli.errors import CommandError
from entrypoints.factories import product_version
from entrypoints.operations.validation import SchemaFaults
from entrypoints.settings import plugins_path, private_hosts_of


async def probe(options: argparse.Namespace) -> int:
    """Print the report and the proposed source. Raises CommandError for a site that gives no answer."""
    allowed = private_hosts_of(os.environ)
    if reason := refusal(options.url, allowed):
        raise CommandError(reason)
    async with GuardedClient(allowed_hosts=allowed, version=product_version()) as http:
        outcome = await _looked(options.url, http)
    if options.json:
        view = View(Tenant("", livemode=True), now())
        print(json.dumps({"report": REPORT.render(outcome.report, view), "proposal": outcome.proposal}, indent=2))
    else:
        for line in _lines(outcome):
            print("".join(letter if letter.isprintable() else "?" for letter in line))
    return 0


async def _looked(url: str, http: GuardedClient) -> Outcome:
    path = plugins_path(os.environ)
    try:
        takes = Takable(connect(path, http, product_version=product_version()), SchemaFaults())
    except AllowlistError as error:
        raise CommandError(str(error)) from error
    documents, limits = MarkupDocuments(), Limits()
    try:
        return await Probing(Visit(HttpWeb(http), documents, limits), documents, limits, takes).run(url)
    except ProbeFailed as failure:
        raise CommandError(str(failure)) from failure


def _lines(outcome: Outcome) -> Iterator[str]:
    report = outcome.report
    yield f"site        {report.final_url}"
    yield f"robots.txt  {report.robots.state}" + _delay(report)
    yield f"platform    {report.platform} ({report.confidence:.0%} sure)"
    if report.wall:
        yield f"wall        {report.wall.kind}: {report.wall.detail}"
    if report.feed:
        counted = report.feed.total if report.feed.total is not None else report.feed.products
        yield f"feed        {report.feed.url} answers {report.feed.status}, products: {counted}"
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
        yield f"proposal    {json.dumps(outcome.proposal)}"


def _delay(report: Report) -> str:
    delay = report.robots.crawl_delay_seconds
    return f", {delay:g} seconds between requests" if delay else ""
