"""Web pages: robots.txt, sitemaps, and products in JSON-LD as shops write them."""

import gzip
import itertools
import json
import random
from collections.abc import Mapping
from typing import Any

import pytest

from connectors.json_ld.connector import SPEC
from connectors.sdk import BadData, Limits, Refused, RetryLater, Unreachable
from connectors.sdk.readers.json_ld import extract_scripts, parse_script
from connectors.sdk.robots import Robots
from connectors.sdk.testing import (
    ConnectorContract,
    ConnectorExample,
    FakeContext,
    FakeHttp,
    StubResponse,
    parse_snapshot,
    run_fetch,
)
from domain.ingestion.columns.plan import ReadPlan
from domain.ingestion.mapping.proposal import map_declared_fields
from domain.ingestion.model import FeedSettings
from domain.ingestion.normalisation import normalise_rows

SITE = "https://shop.example"
SOFA: dict[str, Any] = {
    "@context": "https://schema.org", "@type": "Product", "name": "Sofa Ada", "sku": "A-1", "gtin13": "4006381333931", "mpn": "M-1",
    "brand": {"@type": "Brand", "name": "Lindgren"}, "image": ["https://cdn.example/1.jpg", {"@type": "ImageObject", "url": "https://cdn.example/2.jpg"}],
    "description": "Oak and wool.", "category": "Furniture > Sofas", "color": "Grey", "material": ["Oak", "Wool"],
    "weight": {"@type": "QuantitativeValue", "value": 41.5, "unitCode": "KGM"}, "width": "80 in", "height": {"value": "30", "unitText": "inches"},
    "offers": {"@type": "Offer", "price": "499.00", "priceCurrency": "EUR", "availability": "https://schema.org/InStock",
               "priceSpecification": {"priceType": "https://schema.org/ListPrice", "price": 599}},
}  # fmt: skip


def build_page(*documents: Any, head: str = "") -> str:
    """Return a page with the documents, each in a separate script."""
    scripts = "".join(
        f'<script type="application/ld+json">{one if isinstance(one, str) else json.dumps(one)}</script>'
        for one in documents
    )
    return f"<!DOCTYPE html><html><head>{head}{scripts}</head><body><p>Sofa</p></body></html>"


def read_rows(reader: Any, *documents: Any) -> list[dict[str, Any]]:
    """Return the rows of a page's products, without blank cells."""
    ((table, found),) = reader(build_page(*documents).encode(), format="json_ld")
    return [
        {header: cell for header, cell in zip(table.headers, cells, strict=True) if cell is not None}
        for _, cells in found
    ]


def test_a_product(reader: Any) -> None:
    assert read_rows(reader, SOFA) == [{
        "identifier": "A-1", "sku": "A-1", "gtin": "4006381333931", "mpn": "M-1", "name": "Sofa Ada", "brand": "Lindgren",
        "description": "Oak and wool.", "category": "Furniture > Sofas", "image": ["https://cdn.example/1.jpg", "https://cdn.example/2.jpg"],
        "color": "Grey", "material": "Oak/Wool", "weight": "41.5 kg", "width": "80 in", "height": "30 inches", "priceCurrency": "EUR",
        "price": "499.00", "list price": "599", "availability": "https://schema.org/InStock",
    }]  # fmt: skip


def test_a_page_becomes_a_statement(reader: Any) -> None:
    ((table, found),) = reader(build_page(SOFA).encode(), format="json_ld")
    plan = ReadPlan(map_declared_fields(table.headers, table.fields), FeedSettings())
    key, group = next(itertools.groupby(found, key=lambda row: plan.read_product_key(row[1])))
    statement, problems = normalise_rows(str(key), list(group), plan)
    assert not problems
    (variant,) = statement.variants
    assert variant.offers[0].data["price"] == 49900 and variant.offers[0].data["availability"] == "in_stock"
    assert statement.data["category_path"] == ["Furniture", "Sofas"]
    assert variant.data["weight"]["given"]["unit"] == "kg"


def test_a_group_with_variants(reader: Any) -> None:
    group = {
        "@type": "ProductGroup", "productGroupID": "G-1", "name": "Sofa Ada", "brand": "Lindgren", "image": "https://cdn.example/1.jpg",
        "hasVariant": [
            {"@type": "Product", "sku": f"A-{at}", "name": f"Sofa Ada {colour}", "color": colour, "image": f"https://cdn.example/{colour}.jpg",
             "offers": {"price": 499 + at, "priceCurrency": "EUR", "availability": "OutOfStock"}}
            for at, colour in enumerate(("grey", "blue"))
        ],
    }  # fmt: skip
    found = read_rows(reader, {"@context": "https://schema.org", "@graph": [{"@type": "WebSite"}, group]})
    assert [(row["productGroupID"], row["name"], row["sku"], row["color"], row["price"]) for row in found] == [
        ("G-1", "Sofa Ada", "A-0", "grey", "499"), ("G-1", "Sofa Ada", "A-1", "blue", "500"),
    ]  # fmt: skip
    assert found[0]["variant image"] == ["https://cdn.example/grey.jpg"]


def test_offers_that_are_variants(reader: Any) -> None:
    offers = [{"@type": "Offer", "sku": f"A-{at}", "price": 10 + at, "priceCurrency": "USD"} for at in range(2)]
    found = read_rows(
        reader,
        {
            "@type": "Product",
            "productID": "77",
            "name": "Stool",
            "offers": {"@type": "AggregateOffer", "offers": offers},
        },
    )
    assert [(row["productGroupID"], row["sku"], row["price"]) for row in found] == [
        ("77", "A-0", "10"),
        ("77", "A-1", "11"),
    ]


@pytest.mark.parametrize(
    ("changes", "message", "absent"),
    [
        ({"offers": {"@type": "AggregateOffer", "lowPrice": 10, "highPrice": 20, "priceCurrency": "EUR"}}, "price range", "price"),
        ({"offers": [{"price": 10, "priceCurrency": "EUR"}, {"price": 11, "priceCurrency": "EUR"}]}, "differ in price", "price"),
        ({"weight": "Weight capacity 250 lbs"}, "weight is a load capacity", "weight"),
        ({"weight": {"value": 250, "unitCode": "LBR", "name": "Maximum load"}}, "weight is a load capacity", "weight"),
        ({"weight": "250 lb", "description": "Weight capacity: 250 lbs. Seats two."}, "according to the page", "weight"),
        ({"weight": "250 lb", "additionalProperty": [{"name": "Weight Capacity (lb.)", "value": "250"}]}, "according to the page", "weight"),
        ({"weight": {"value": 41, "unitCode": "XYZ"}}, "unit of the", "weight"),
        ({"weight": 41}, "unit of the", "weight"),
    ],
)  # fmt: skip
def test_ambiguous_values_are_reported_instead_of_guessed(
    reader: Any, changes: dict[str, Any], message: str, absent: str
) -> None:
    (row,) = read_rows(reader, {**SOFA, **changes})
    assert absent not in row
    assert any(message in report.detail for report in reader.context.reports), reader.context.reports


def test_an_aggregate_of_one_price(reader: Any) -> None:
    (row,) = read_rows(
        reader,
        {
            **SOFA,
            "offers": {"@type": "AggregateOffer", "lowPrice": "10.00", "highPrice": "10.00", "priceCurrency": "EUR"},
        },
    )
    assert row["price"] == "10.00"


def test_a_weight_next_to_a_weight_capacity(reader: Any) -> None:
    (row,) = read_rows(reader, {**SOFA, "weight": "41 lb", "description": "Weight capacity 250 lbs."})
    assert row["weight"] == "41 lb"


@pytest.mark.parametrize(
    "block",
    [
        "//<![CDATA[\n{}\n//]]>", "<!--\n{}\n-->", "\ufeff {} ;", "/* <![CDATA[ */ {} /* ]]> */",
    ],
)  # fmt: skip
def test_legacy_script_syntax_is_read(reader: Any, block: str) -> None:
    assert len(read_rows(reader, block.replace("{}", json.dumps(SOFA)))) == 1


def test_line_breaks_inside_texts(reader: Any) -> None:
    (row,) = read_rows(reader, json.dumps(SOFA).replace("Oak and wool.", "Oak\nand\twool."))
    assert row["description"] == "Oak\nand\twool."


def test_malformed_blocks_are_reported_and_skipped(reader: Any) -> None:
    assert len(read_rows(reader, '{"@type": "Product", "name": }', SOFA, "")) == 1
    assert ["block 1" in report.detail for report in reader.context.reports] == [True, False]


def test_commented_and_quoted_blocks_are_ignored(reader: Any) -> None:
    other = json.dumps({**SOFA, "sku": "OLD"})
    quoted = f"<script>var a = '<script type=\"application/ld+json\">{other}<\\/script>';</script>"
    head = f'<!-- <script type="application/ld+json">{other}</script> --><!-->{quoted}'
    ((table, found),) = reader(
        build_page(SOFA, head=head).replace("<script type", "<SCRIPT async TYPE").encode(), format="json_ld"
    )
    assert [cells[table.headers.index("sku")] for _, cells in found] == ["A-1"]


def test_no_product_at_all(reader: Any) -> None:
    with pytest.raises(BadData, match="no page contains a product"):
        read_rows(reader, {"@type": "Organization", "name": "Lindgren"})


def test_json_ld_by_itself(reader: Any) -> None:
    ((table, found),) = reader(
        json.dumps({"@graph": [SOFA, {**SOFA, "sku": "A-2", "offers": []}]}).encode(), format="json_ld"
    )
    assert [cells[table.headers.index("sku")] for _, cells in found] == ["A-1", "A-2"]


def test_json_ld_is_detected(reader: Any) -> None:
    for content in (json.dumps([SOFA]), f"<!doctype html><html>{build_page(SOFA)}</html>"):
        ((table, found),) = reader(content.encode())
        assert table.headers[0] == "productGroupID"
        assert len(found) == 1
    ((table, _),) = reader("\n".join([json.dumps(SOFA)] * 2).encode())
    assert table.fields is None, "JSON Lines are records"


def test_pages_that_are_hard_to_parse(reader: Any) -> None:
    deep = "<div>" * 1_000_000
    assert len(read_rows(reader, SOFA)) == 1
    ((_, found),) = reader((deep + build_page(SOFA)).replace("<div>", "<html><div>", 1).encode(), format="json_ld")
    assert len(found) == 1
    for odd in (
        "<script type='application/ld+json'>",
        "<!--",
        "<!-- <script>",
        "</script",
        "<script ",
        "<script></script>",
        "<ScRiPt type=ld+json>",
    ):
        list(extract_scripts(odd * 100_000))
    chance, whole = random.Random(2), build_page(SOFA).encode()
    for _ in range(300):
        at = chance.randrange(len(whole))
        damaged = (
            whole[:at]
            + bytes(chance.choices(b"<>\"'{}[]\\/!-", k=chance.randrange(4)))
            + whole[at + chance.randrange(30) :]
        )
        try:
            reader(damaged, format="json_ld")
        except BadData as error:
            assert str(error)


@pytest.mark.parametrize("text", ['"' + "\\" * 100_000, "<!--" * 50_000, '{"a": "' + "\n" * 200_000, "[" * 100_000])
def test_hostile_blocks(text: str) -> None:
    with pytest.raises(BadData):
        parse_script(text)


ROBOTS = b"""
User-agent: *
Disallow: /
User-agent: other
User-agent: Joinery/9
Disallow: /cart
Disallow: /*?sort=
Disallow: /private$
Allow: /cart/open
Crawl-delay: 2
Sitemap: https://shop.example/maps/index.xml
"""


@pytest.mark.parametrize(
    ("path", "allowed"),
    [("/", True), ("/cart", False), ("/cart/7", False), ("/cart/open/7", True), ("/p?sort=a", False), ("/p?page=2", True),
     ("/private", False), ("/private/x", True), ("/%63art", False)],
)  # fmt: skip
def test_robots(path: str, allowed: bool) -> None:
    rules = Robots(ROBOTS)
    assert rules.allows(f"{SITE}{path}") is allowed
    assert rules.delay == 2 and rules.sitemaps == (f"{SITE}/maps/index.xml",)
    assert not Robots(b"User-agent: *\nDisallow: /").allows(SITE)
    assert Robots(b"\xff\xfe garbage \0").allows(SITE)


def build_sitemap_index(*addresses: str) -> bytes:
    """Return a sitemap index."""
    inner = "".join(f"<sitemap><loc>{address}</loc></sitemap>" for address in addresses)
    return f'<?xml version="1.0"?><sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{inner}</sitemapindex>'.encode()


def build_sitemap(*addresses: str) -> bytes:
    """Return a sitemap."""
    inner = "".join(f"<url><loc> {address} </loc><priority>1</priority></url>" for address in addresses)
    return f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{inner}</urlset>'.encode()


def build_html_response(text: str) -> StubResponse:
    """Return the response of a page."""
    return StubResponse(text.encode(), content_type="text/html")


def build_site(more: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return a site with an index of two sitemaps, one compressed, and one product each on two pages."""
    return {
        f"{SITE}/robots.txt": StubResponse(ROBOTS, content_type="text/plain"),
        f"{SITE}/maps/index.xml": StubResponse(build_sitemap_index(f"{SITE}/maps/a.xml", f"{SITE}/maps/b.xml.gz", "https://other.example/c.xml")),
        f"{SITE}/maps/a.xml": StubResponse(build_sitemap(f"{SITE}/p/1", f"{SITE}/cart", f"{SITE}/about", "https://other.example/p/9", f"{SITE}/p/1")),
        f"{SITE}/maps/b.xml.gz": StubResponse(gzip.compress(build_sitemap(f"{SITE}/p/2", f"{SITE}/p/gone"))),
        f"{SITE}/p/1": build_html_response(build_page(SOFA)),
        f"{SITE}/p/2": build_html_response(build_page({**SOFA, "sku": "A-2"})),
        f"{SITE}/about": build_html_response("<html>about us</html>"),
        **(more or {}),
    }  # fmt: skip


def create_context(answers: Mapping[str, Any], **config: Any) -> FakeContext:
    """Return a context whose site has the responses."""
    return FakeContext(config={"url": SITE, "pages": "site", **config}, http=FakeHttp(answers))


def test_a_site() -> None:
    context = create_context(build_site())
    snapshot = run_fetch(SPEC, context)
    ((table, found),) = parse_snapshot(SPEC, context, snapshot)
    assert [cells[table.headers.index("sku")] for _, cells in found] == ["A-1", "A-2"]
    paths = [request.url.removeprefix(SITE) for request in context.http.requests]
    assert paths == [
        "/robots.txt",
        "/maps/index.xml",
        "/maps/a.xml",
        "/maps/b.xml.gz",
        "/p/1",
        "/about",
        "/p/2",
        "/p/gone",
    ]
    assert context.slept == 2 * 6, "as long between pages as robots.txt requires"
    details = " ".join(report.detail for report in context.reports)
    assert "1 pages were skipped because robots.txt" in details and "1 pages in the sitemap no longer exist" in details


def test_bounds() -> None:
    context = create_context(build_site(), max_pages=1, include="/p/")
    ((_, found),) = parse_snapshot(SPEC, context, run_fetch(SPEC, context))
    assert len(found) == 1
    assert any("2 pages were skipped because of the limit" in report.detail for report in context.reports)
    small = create_context(build_site())
    small.limits = Limits(snapshot_bytes=4 * 1024 * 1024 + 10)
    assert b"joinery_note" in run_fetch(SPEC, small)


@pytest.mark.parametrize(
    ("more", "kind", "message"),
    [
        ({f"{SITE}/robots.txt": StubResponse(status=500)}, Unreachable, "robots.txt"),
        ({f"{SITE}/robots.txt": StubResponse(b"User-agent: *\nDisallow: /\nSitemap: https://shop.example/maps/index.xml")}, BadData, "no allowed page"),
        ({f"{SITE}/robots.txt": StubResponse(b"User-agent: *\nCrawl-delay: 600")}, Refused, "600 seconds"),
        ({f"{SITE}/robots.txt": StubResponse(status=404)}, BadData, "no sitemap"),
        ({f"{SITE}/maps/index.xml": StubResponse(b"<!DOCTYPE a [<!ENTITY x 'xx'>]><urlset/>")}, BadData, "DOCTYPE"),
        ({f"{SITE}/maps/index.xml": StubResponse(b"<urlset><url><loc>x")}, BadData, "not valid XML"),
        ({f"{SITE}/maps/a.xml": StubResponse(gzip.compress(b"x")[:-3])}, BadData, "incomplete"),
        ({f"{SITE}/maps/a.xml": StubResponse(b"hello")}, BadData, "not a sitemap"),
        ({f"{SITE}/p/2": StubResponse(status=500)}, Unreachable, "500"),
        ({f"{SITE}/p/2": StubResponse(status=403)}, Unreachable, "incomplete"),
        ({f"{SITE}/p/2": StubResponse(status=429, headers={"Retry-After": "999"})}, RetryLater, "limits"),
    ],
)  # fmt: skip
def test_what_ends_a_run(more: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        run_fetch(SPEC, create_context(build_site(more)))


def test_a_sitemap_bomb_is_refused() -> None:
    bomb = gzip.compress(b"<urlset>" + b" " * (80 << 20))
    with pytest.raises(BadData, match="64 MiB"):
        run_fetch(SPEC, create_context(build_site({f"{SITE}/maps/a.xml": StubResponse(bomb)})))


def test_circular_sitemaps_end() -> None:
    loop = build_sitemap_index(f"{SITE}/maps/a.xml", f"{SITE}/maps/index.xml")
    context = create_context(build_site({f"{SITE}/maps/index.xml": StubResponse(loop)}))
    assert len(parse_snapshot(SPEC, context, run_fetch(SPEC, context))[0][1]) == 1


def test_a_list_of_addresses_as_sitemap() -> None:
    context = create_context(
        build_site({f"{SITE}/list.txt": StubResponse(f"{SITE}/p/1\n{SITE}/p/2\n".encode())}), url=f"{SITE}/list.txt"
    )
    assert len(parse_snapshot(SPEC, context, run_fetch(SPEC, context))[0][1]) == 2


class TestJsonLd(ConnectorContract):
    """Contract tests of the connector."""

    example = ConnectorExample(
        spec=SPEC,
        config={"url": f"{SITE}/p/1", "format": "json_ld"},
        responses={f"{SITE}/p/1": build_html_response(build_page(SOFA))},
    )
