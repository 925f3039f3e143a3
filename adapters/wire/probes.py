"""JSON of source probes (docs/probes.md)."""

from collections.abc import Callable
from typing import Any, Final

from adapters.wire.resource import Resource, part, parts
from domain.kernel.resource import Field, View, computed, fixed, optional
from domain.kernel.schema import (
    Schema,
    array,
    boolean,
    enum,
    id_of,
    integer,
    map_of,
    named,
    number,
    record,
    text,
    timestamp,
    url,
)
from domain.probes.files import MOST_FIELDS
from domain.probes.model import (
    Effort,
    Estimate,
    Evidence,
    FailureCode,
    Platform,
    PlatformFeed,
    Probe,
    ProbeStatus,
    Report,
    Robots,
    RobotsState,
    Sample,
    SampledPage,
    Sitemap,
    Wall,
    WallKind,
    Way,
)

_SHOP = "https://vendor.example/"


def _texts(example: str, description: str, most: int | None = None) -> Schema:
    return array(text(example, longest=2_048), most=most, description=description)


def _optional_part(resource: Resource[Any], select: Callable[[Any], Any], description: str) -> Field:
    """Return a field with the selected part, which is omitted if it is None."""

    def render(row: Any, view: View) -> dict[str, Any] | None:
        selected = select(row)
        return None if selected is None else resource.render(selected, view)

    schema = {**resource.schema, "description": description}
    return Field(schema, render, optional=True, rendered=True)


_ROBOTS = Resource[Robots](
    None,
    {
        "state": enum("parsed", *(state for state in RobotsState if state != RobotsState.PARSED)),
        "crawl_delay_seconds": optional(number(2, "Minimum seconds between two requests, as the site demands.")),
        "sitemaps": _texts("https://vendor.example/sitemap.xml", "The sitemaps that the file names."),
    },
    description="Result of reading the site's robots.txt.",
)
_EVIDENCE = Resource[Evidence](
    None,
    {
        "platform": named("shop_platform", enum(*Platform)),
        "signal": text("endpoint /products.json", longest=500),
        "weight": number(0.95, "Reliability of this signal alone, from 0 to 1."),
    },
)
_WALL = Resource[Wall](
    None, {"kind": enum(*WallKind), "detail": text("The page's title says “just a moment”.", longest=2_000)}
)
_FEED = Resource[PlatformFeed](
    None,
    {
        "platform": named("shop_platform", enum(*Platform)),
        "url": url("https://vendor.example/products.json"),
        "status": integer(200, description="The status of the response."),
        "products": optional(integer(25, least=0, description="Number of products in the response.")),
        "total": optional(integer(1204, least=0, description="Total number of products, if the feed states it.")),
        "fields": _texts("variants.sku", "Fields for which products have values.", MOST_FIELDS),
    },
)
_SITEMAP = Resource[Sitemap](
    None,
    {
        "read": _texts(
            "https://vendor.example/sitemap_products_1.xml",
            "The sitemaps that were read, at most the limit of a probe.",
        ),
        "product_pages": integer(1204, least=0, description="Number of product pages that they list."),
        "truncated": boolean(False, "The site's sitemaps contain more than was read."),
    },
)
_PAGE = Resource[SampledPage](
    None,
    {
        "url": url("https://vendor.example/products/oak-chair"),
        "status": integer(200),
        "products": integer(1, least=0, description="Number of products in the page's JSON-LD."),
    },
)
_SAMPLE = Resource[Sample](
    None,
    {
        "pages": parts(_PAGE, lambda sample: sample.pages, "The product pages that were read."),
        "malformed_blocks": integer(0, least=0, description="Number of JSON-LD blocks with invalid JSON."),
        "coverage": map_of(
            number(1), {"name": 1, "price": 0.88}, "Share of sampled products with a value of the field, from 0 to 1."
        ),
    },
)
_ESTIMATE = Resource[Estimate](
    None,
    {
        "effort": named("probe_effort", enum(*Effort)),
        "kind": named("probe_way", enum(*Way)),
        "reasons": _texts("The shop has a machine-readable product list.", "The reasons for the estimate."),
    },
    description="How to connect the site, and the effort.",
)
REPORT = Resource[Report](
    None,
    {
        "final_url": url(_SHOP),
        "robots": part(_ROBOTS, lambda report: report.robots),
        "platform": named("shop_platform", enum(*Platform)),
        "confidence": number(0.98, "Confidence in the platform, from 0 to 1."),
        "evidence": parts(_EVIDENCE, lambda report: report.evidence, "All signals of a platform that were found."),
        "wall": _optional_part(_WALL, lambda report: report.wall, "What prevents access; omitted if access is free."),
        "feed": _optional_part(_FEED, lambda report: report.feed, "A machine-readable product list, or a file."),
        "sitemap": _optional_part(_SITEMAP, lambda report: report.sitemap, "Omitted if no sitemap was read."),
        "sample": _optional_part(_SAMPLE, lambda report: report.sample, "Omitted if no product page was read."),
        "disallowed": _texts(
            "https://vendor.example/cart",
            "URLs that were not requested because robots.txt disallows them.",
        ),
        "requests": integer(14, least=0, description="Number of requests, including redirects and robots.txt."),
        "notes": _texts("https://vendor.example/sitemap.xml answers 404.", "Further notes."),
        "estimate": part(_ESTIMATE, lambda report: report.estimate),
    },
)
PROPOSAL: Final[Schema] = {
    "type": "object",
    "description": "A request body for POST /v1/sources; omitted if the site cannot be connected.",
    "examples": [
        {
            "name": "vendor.example",
            "kind": "url",
            "connector": "shopify",
            "config": {"url": _SHOP, "platform": "shopify", "currency": "usd"},
            "schedule": {"interval_minutes": 1440},
        }
    ],
}
PROBE = Resource[Probe](
    "source_probe",
    {
        "id": id_of("prb"),
        "url": fixed(url(_SHOP), required=True),
        "status": named("source_probe_status", enum(*ProbeStatus)),
        "livemode": computed(boolean(), lambda _, view: view.tenant.livemode),
        "report": _optional_part(REPORT, lambda probe: probe.report, "Present after success."),
        "failure": optional(
            record(
                None,
                {
                    "code": named("probe_failure_code", enum(*FailureCode)),
                    "message": text("The host name has no address.", longest=2_000),
                },
                description="Present after a failure.",
            )
        ),
        "proposal": optional(PROPOSAL),
        "created_at": timestamp(),
        "completed_at": optional(timestamp()),
    },
    path="/v1/source-probes/{id}",
)
