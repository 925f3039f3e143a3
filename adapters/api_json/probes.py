"""JSON of website checks (docs/probes.md)."""

from collections.abc import Callable
from typing import Any, Final

from adapters.api_json.resource import JsonResource, create_nested_field, create_nested_list_field
from domain.kernel.resource import Field, RenderContext, computed, optional, set_at_creation
from domain.kernel.schema import (
    Schema,
    array,
    boolean,
    enum,
    id_schema,
    integer,
    map_schema,
    number,
    response_object,
    text,
    timestamp,
    url,
    with_title,
)
from domain.probes.files import MAX_LISTED_FIELDS
from domain.probes.model import (
    AccessBlock,
    AccessBlockKind,
    Effort,
    Estimate,
    Evidence,
    FailureCode,
    PageSample,
    Platform,
    PlatformFeed,
    Probe,
    ProbeReport,
    ProbeStatus,
    ReadingMethod,
    Robots,
    RobotsState,
    SampledPage,
    Sitemap,
)

_SHOP = "https://vendor.example/"


def _texts_schema(example: str, description: str, max_items: int | None = None) -> Schema:
    return array(text(example, max_length=2_048), max_items=max_items, description=description)


def _create_optional_field(resource: JsonResource[Any], select: Callable[[Any], Any], description: str) -> Field:
    """Return a field that contains the nested resource that `select` returns; omitted if `select` returns None."""

    def render(row: Any, view: RenderContext) -> dict[str, Any] | None:
        selected = select(row)
        return None if selected is None else resource.render(selected, view)

    schema = {**resource.schema, "description": description}
    return Field(schema, render, optional=True, rendered=True)


_ROBOTS = JsonResource[Robots](
    None,
    {
        "state": enum("parsed", *(state for state in RobotsState if state != RobotsState.PARSED)),
        "crawl_delay_seconds": optional(number(2, "Minimum seconds between two requests, as the site requires.")),
        "sitemaps": _texts_schema("https://vendor.example/sitemap.xml", "The sitemaps that robots.txt lists."),
    },
    description="Result of reading the site's robots.txt.",
)
_EVIDENCE = JsonResource[Evidence](
    None,
    {
        "platform": with_title("shop_platform", enum(*Platform)),
        "signal": text("endpoint /products.json", max_length=500),
        "weight": number(0.95, "Probability of the platform if this is the only signal, from 0 to 1."),
    },
)
_ACCESS_BLOCK = JsonResource[AccessBlock](
    None,
    {
        "kind": enum(*AccessBlockKind),
        "detail": text("The title of the page contains “just a moment”.", max_length=2_000),
    },
)
_FEED = JsonResource[PlatformFeed](
    None,
    {
        "platform": with_title("shop_platform", enum(*Platform)),
        "url": url("https://vendor.example/products.json"),
        "status": integer(200, description="The status of the response."),
        "products": optional(integer(25, minimum=0, description="Number of products in the response.")),
        "total": optional(integer(1204, minimum=0, description="Total number of products, if the feed states it.")),
        "fields": _texts_schema("variants.sku", "Fields for which products have values.", MAX_LISTED_FIELDS),
    },
)
_SITEMAP = JsonResource[Sitemap](
    None,
    {
        "read": _texts_schema(
            "https://vendor.example/sitemap_products_1.xml",
            "The sitemaps that were read. If a limit of the website check is reached, further sitemaps are skipped.",
        ),
        "product_pages": integer(
            1204, minimum=0, description="Number of product pages in the sitemaps that `read` contains."
        ),
        "truncated": boolean(
            False, "Whether sitemaps that were skipped or read in part may list further product pages."
        ),
    },
)
_PAGE = JsonResource[SampledPage](
    None,
    {
        "url": url("https://vendor.example/products/oak-chair"),
        "status": integer(200),
        "products": integer(1, minimum=0, description="Number of products in the page's JSON-LD."),
    },
)
_SAMPLE = JsonResource[PageSample](
    None,
    {
        "pages": create_nested_list_field(_PAGE, lambda sample: sample.pages, "The product pages that were read."),
        "malformed_blocks": integer(0, minimum=0, description="Number of JSON-LD blocks with invalid JSON."),
        "coverage": map_schema(
            number(1), {"name": 1, "price": 0.88}, "Share of sampled products with a value of the field, from 0 to 1."
        ),
    },
)
_ESTIMATE = JsonResource[Estimate](
    None,
    {
        "effort": with_title("probe_effort", enum(*Effort)),
        "kind": with_title("probe_way", enum(*ReadingMethod)),
        "reasons": _texts_schema("The shop has a machine-readable product list.", "The reasons for the estimate."),
    },
    description="Recommended method of reading the site's products, and the effort of connecting the site.",
)
REPORT = JsonResource[ProbeReport](
    None,
    {
        "final_url": url(_SHOP),
        "robots": create_nested_field(_ROBOTS, lambda report: report.robots),
        "platform": with_title("shop_platform", enum(*Platform)),
        "confidence": number(0.98, "Confidence that the platform is correct, from 0 to 1."),
        "evidence": create_nested_list_field(
            _EVIDENCE, lambda report: report.evidence, "All signals of a platform that were found."
        ),
        "wall": _create_optional_field(
            _ACCESS_BLOCK, lambda report: report.wall, "The obstacle that prevents access; omitted if there is none."
        ),
        "feed": _create_optional_field(
            _FEED,
            lambda report: report.feed,
            "The product list of the shop's platform, or the data file at the URL; omitted if neither was found.",
        ),
        "sitemap": _create_optional_field(_SITEMAP, lambda report: report.sitemap, "Omitted if no sitemap was read."),
        "sample": _create_optional_field(_SAMPLE, lambda report: report.sample, "Omitted if no product page was read."),
        "disallowed": _texts_schema(
            "https://vendor.example/cart",
            "URLs that were not requested because robots.txt disallows them.",
        ),
        "requests": integer(14, minimum=0, description="Number of requests, including redirects and robots.txt."),
        "notes": _texts_schema(
            "https://vendor.example/sitemap.xml returned 404.", "Further remarks about the website."
        ),
        "estimate": create_nested_field(_ESTIMATE, lambda report: report.estimate),
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
PROBE = JsonResource[Probe](
    "source_probe",
    {
        "id": id_schema("prb"),
        "url": set_at_creation(url(_SHOP), required=True),
        "status": with_title("source_probe_status", enum(*ProbeStatus)),
        "livemode": computed(boolean(), lambda _, view: view.tenant.livemode),
        "report": _create_optional_field(REPORT, lambda probe: probe.report, "Present after success."),
        "failure": optional(
            response_object(
                None,
                {
                    "code": with_title("probe_failure_code", enum(*FailureCode)),
                    "message": text("The host name has no IP address.", max_length=2_000),
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
