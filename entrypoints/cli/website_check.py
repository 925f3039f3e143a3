"""Command that checks a website without a server."""

import json as jsons
import os
from collections.abc import Iterator

from adapters.api_json.probes import REPORT
from adapters.http.client import GuardedClient
from adapters.http.web import HttpWeb
from adapters.markup.documents import MarkupDocuments
from domain.kernel.addresses import describe_url_refusal
from domain.kernel.clock import now
from domain.kernel.resource import RenderContext
from domain.kernel.tenancy import Tenant
from domain.probes.usecases.execution import ProposalChecker
from domain.probes.usecases.polite_client import PoliteClient, ProbeLimits
from domain.probes.usecases.probe_runner import ProbeFailed, ProbeOutcome, ProbeRunner
from entrypoints.cli.connectors import load_allowed_connectors
from entrypoints.errors import CommandError
from entrypoints.operations.validation import JsonSchemaValidator
from entrypoints.settings import get_release_version, read_private_hosts


async def probe_website(url: str, /, *, json: bool = False) -> int:
    """Check a website before it is connected, without a server; print the report and the proposed source.

    Args:
        url: URL of the website.
        json: Print one JSON object.
    """
    allowed = read_private_hosts(os.environ)
    if reason := describe_url_refusal(url, allowed):
        raise CommandError(reason)
    async with GuardedClient(allowed_hosts=allowed, version=get_release_version()) as http:
        takes = ProposalChecker(load_allowed_connectors(http), JsonSchemaValidator())
        documents, limits = MarkupDocuments(), ProbeLimits()
        try:
            outcome = await ProbeRunner(
                PoliteClient(HttpWeb(http), documents, limits), documents, limits, takes
            ).run_probe(url)
        except ProbeFailed as failure:
            raise CommandError(str(failure)) from failure
    if json:
        view = RenderContext(Tenant("", livemode=True), now())
        print(jsons.dumps({"report": REPORT.render(outcome.report, view), "proposal": outcome.proposal}, indent=2))
    else:
        for line in _format_report(outcome):
            print("".join(letter if letter.isprintable() else "?" for letter in line))
    return 0


def _format_report(outcome: ProbeOutcome) -> Iterator[str]:
    """Yield the lines that describe the result of a website check."""
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
        plus = " and more" if report.sitemap.truncated else ""
        yield f"sitemaps    {len(report.sitemap.read)} read, {report.sitemap.product_pages}{plus} pages of products"
    if report.sample:
        coverage = [f"{name} {share:.0%}" for name, share in report.sample.coverage.items() if share]
        yield f"sample      {len(report.sample.pages)} pages; JSON-LD: {', '.join(coverage) or 'none'}"
    yield f"requests    {report.requests}"
    for url in report.disallowed:
        yield f"disallowed  {url}"
    for note in report.notes:
        yield f"note        {note}"
    estimate = report.estimate
    yield f"estimate    {estimate.effort} effort to connect, reading method {estimate.kind}: {' '.join(estimate.reasons)}"
    if outcome.proposal:
        yield f"proposal    {jsons.dumps(outcome.proposal)}"
