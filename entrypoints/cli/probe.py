"""`joinery probe URL`: looks at a website as a source probe does, without a server, and prints what it found."""

import json as jsons
import os
from collections.abc import Iterator

from adapters.http.client import GuardedClient
from adapters.http.web import HttpWeb
from adapters.markup.documents import MarkupDocuments
from adapters.wire.probes import REPORT
from domain.kernel.addresses import refusal
from domain.kernel.clock import now
from domain.kernel.resource import View
from domain.kernel.tenancy import Tenant
from domain.probes.usecases.execution import Takable
from domain.probes.usecases.probing import Outcome, ProbeFailed, Probing
from domain.probes.usecases.visiting import Limits, Visit
from entrypoints.cli.connectors import load_connectors
from entrypoints.errors import CommandError
from entrypoints.factories import product_version
from entrypoints.operations.validation import SchemaFaults
from entrypoints.settings import private_hosts_of


async def probe(url: str, /, *, json: bool = False) -> int:
    """Look at a website as a source probe does, without a server; print the report and the proposed source.

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
        for line in _lines(outcome):
            print("".join(letter if letter.isprintable() else "?" for letter in line))
    return 0


def _lines(outcome: Outcome) -> Iterator[str]:
    report = outcome.report
    delay = report.robots.crawl_delay_seconds
    yield f"site        {report.final_url}"
    yield f"robots.txt  {report.robots.state}" + (f", {delay:g} seconds between requests" if delay else "")
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
        yield f"proposal    {jsons.dumps(outcome.proposal)}"
