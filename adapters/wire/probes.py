"""The JSON of source probes (docs/probes.md)."""

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


def _maybe(resource: Resource[Any], of: Callable[[Any], Any], description: str) -> Field:
    """A part that is left out where there is none."""

    def render(row: Any, view: View) -> dict[str, Any] | None:
        found = of(row)
        return None if found is None else resource.render(found, view)

    schema = {**resource.schema, "description": description}
    return Field(schema, render, optional=True, rendered=True)


_ROBOTS = Resource[Robots](
    None,
    {
        "state": enum("parsed", *(state for state in RobotsState if state != RobotsState.PARSED)),
        "crawl_delay_seconds": optional(number(2, "Seconds between two requests, as the site asks.")),
        "sitemaps": _texts("https://vendor.example/sitemap.xml", "The sitemaps that it names."),
    },
    description="What the site's robots.txt came to.",
)
_EVIDENCE = Resource[Evidence](
    None,
    {
        "platform": named("shop_platform", enum(*Platform)),
        "signal": text("endpoint /products.json", longest=500),
        "weight": number(0.95, "How sure the sign is by itself, from 0 to 1."),
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
        "status": integer(200, description="What it answered."),
        "products": optional(integer(25, least=0, description="Products in the answer that was read.")),
        "total": optional(integer(1204, least=0, description="Products that there are, where that is told.")),
        "fields": _texts("variants.sku", "Fields that products have a value in.", MOST_FIELDS),
    },
)
_SITEMAP = Resource[Sitemap](
    None,
    {
        "read": _texts("https://vendor.example/sitemap_products_1.xml", "The sitemaps that were read."),
        "product_pages": integer(1204, least=0, description="Pages of products that they list."),
        "truncated": boolean(False, "There is more in the site's sitemaps than was read."),
    },
)
_PAGE = Resource[SampledPage](
    None,
    {
        "url": url("https://vendor.example/products/oak-chair"),
        "status": integer(200),
        "products": integer(1, least=0, description="Products that its JSON-LD states."),
    },
)
_SAMPLE = Resource[Sample](
    None,
    {
        "pages": parts(_PAGE, lambda sample: sample.pages, "Pages of products that were read."),
        "malformed_blocks": integer(0, least=0, description="JSON-LD blocks that are no JSON."),
        "coverage": map_of(
            number(1), {"name": 1, "price": 0.88}, "The share of sampled products that state each field, from 0 to 1."
        ),
    },
)
_ESTIMATE = Resource[Estimate](
    None,
    {
        "effort": named("probe_effort", enum(*Effort)),
        "kind": named("probe_way", enum(*Way)),
        "reasons": _texts("The shop lists its products for machines.", "Why, in sentences."),
    },
    description="How much it takes to connect the site, and by what.",
)
REPORT = Resource[Report](
    None,
    {
        "final_url": url(_SHOP),
        "robots": part(_ROBOTS, lambda report: report.robots),
        "platform": named("shop_platform", enum(*Platform)),
        "confidence": number(0.98, "How sure the platform is, from 0 to 1."),
        "evidence": parts(_EVIDENCE, lambda report: report.evidence, "Every sign of a platform that was seen."),
        "wall": _maybe(_WALL, lambda report: report.wall, "What keeps readers out; absent where nothing does."),
        "feed": _maybe(_FEED, lambda report: report.feed, "A list of products for machines, or a file."),
        "sitemap": _maybe(_SITEMAP, lambda report: report.sitemap, "Absent where no sitemap was read."),
        "sample": _maybe(_SAMPLE, lambda report: report.sample, "Absent where no page of a product was read."),
        "disallowed": _texts(
            "https://vendor.example/cart",
            "What would have been read, had robots.txt not forbidden it; never asked for.",
        ),
        "requests": integer(14, least=0, description="Requests that were made, redirects and robots.txt included."),
        "notes": _texts("https://vendor.example/sitemap.xml answers 404.", "What else there is to say."),
        "estimate": part(_ESTIMATE, lambda report: report.estimate),
    },
)
PROPOSAL: Final[Schema] = {
    "type": "object",
    "description": "A body that POST /v1/sources takes as it is; absent where no source can be made of the site.",
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
        "report": _maybe(REPORT, lambda probe: probe.report, "Present once it succeeded."),
        "failure": optional(
            record(
                None,
                {
                    "code": named("probe_failure_code", enum(*FailureCode)),
                    "message": text("The host's name has no address.", longest=2_000),
                },
                description="Present when it failed.",
            )
        ),
        "proposal": optional(PROPOSAL),
        "created_at": timestamp(),
        "completed_at": optional(timestamp()),
    },
    path="/v1/source-probes/{id}",
)
