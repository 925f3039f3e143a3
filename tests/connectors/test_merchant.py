"""Google Merchant feeds as RSS, Atom and table, with all published attributes."""

import itertools
from typing import Any

import pytest

from connectors.sdk.readers.merchant import FIELD_BY_ATTRIBUTE
from connectors.sdk.tables import DECLARED_FIELDS, base_field
from domain.ingestion.columns.plan import ReadPlan
from domain.ingestion.mapping.proposal import map_declared_fields
from domain.ingestion.model import FeedSettings
from domain.ingestion.normalisation import normalise_rows
from domain.ingestion.vocabulary.fields import is_field, parse_declared_field

ITEM = """
<g:id>SF-1-OAK</g:id><title>Plain title</title><g:title>Sofa Ada, oak</g:title><g:item_group_id>SF-1</g:item_group_id>
<link>https://shop.example/ada</link><g:image_link>https://shop.example/1.jpg</g:image_link>
<g:additional_image_link>https://shop.example/2.jpg</g:additional_image_link>
<g:additional_image_link>https://shop.example/3.jpg</g:additional_image_link>
<g:price>319.0 EUR</g:price><g:sale_price>299.00 EUR</g:sale_price>{sale}
<g:availability>backorder</g:availability><g:availability_date>2027-01-21T00:00-0800</g:availability_date>
<g:gtin>4006381333931</g:gtin><g:mpn>SF-1-OAK</g:mpn><g:brand>Lindgren</g:brand>
<g:product_type>Living > Sofas</g:product_type><g:google_product_category>460</g:google_product_category>
<g:color>Grey</g:color><g:material>Oak/Wool</g:material><g:size>3 seats</g:size>
<g:shipping_weight>62.8 kg</g:shipping_weight><g:shipping_length>210 cm</g:shipping_length>
<g:product_weight>55 kg</g:product_weight><g:product_width>200 cm</g:product_width><g:product_height>80 cm</g:product_height>
<g:product_detail><g:section_name>Seat</g:section_name><g:attribute_name>Foam</g:attribute_name>
<g:attribute_value>Cold</g:attribute_value></g:product_detail>
<g:shipping><g:country>DE</g:country><g:price>49 EUR</g:price></g:shipping>
"""
RSS = '<rss version="2.0" xmlns:g="http://base.google.com/ns/1.0"><channel>{}</channel></rss>'
ATOM = '<feed xmlns="http://www.w3.org/2005/Atom" xmlns:g="http://base.google.com/ns/1.0">{}</feed>'


def build_item(sale: str = "", tag: str = "item") -> str:
    """Return an item."""
    inner = ITEM.replace(" > ", " &gt; ").format(sale=sale)
    return f"<{tag}>{inner}</{tag}>"


def read_product(table: Any, rows: list[Any], currency: str | None = None) -> Any:
    """Return the first product of the rows."""
    settings = FeedSettings(currency=currency)
    plan = ReadPlan(map_declared_fields(table.headers, table.fields), settings)
    groups = itertools.groupby(rows, key=lambda row: plan.read_product_key(row[1]))
    key, found = next(groups)
    statement, problems = normalise_rows(str(key), list(found), plan)
    assert not problems, problems
    return statement


@pytest.mark.parametrize("feed", [RSS.format(build_item()), ATOM.format(build_item(tag="entry"))], ids=["rss", "atom"])
def test_from_item_to_product(reader: Any, feed: str) -> None:
    ((table, rows),) = reader(feed.encode())
    made = read_product(table, rows)
    assert made.key == "SF-1"
    assert made.data["title"] == "Sofa Ada, oak"
    assert made.data["category_path"] == ["Living", "Sofas"]
    assert [medium["url"][-5:] for medium in made.data["media"]] == ["1.jpg", "2.jpg", "3.jpg"]
    assert made.data["features"] == ["Seat: Foam: Cold"]
    (variant,) = made.variants
    assert (variant.key, variant.data["sku"], variant.data["gtin"]) == ("SF-1-OAK", "SF-1-OAK", "4006381333931")
    assert variant.data["axes"] == {"Size": "3 seats"}
    assert variant.data["cartons"][0]["weight"]["hundredths_lb"] > variant.data["weight"]["hundredths_lb"]
    assert set(variant.data["dimensions"]) == {"width", "height"}
    (offer,) = variant.offers
    assert (offer.data["price"], offer.data["compare_at"], offer.data["currency"]) == (29900, 31900, "eur")
    assert offer.data["availability"] == "backorder"
    assert offer.data["incoming"] == [{"eta": "2027-01-21"}]


@pytest.mark.parametrize(
    ("span", "price", "count"),
    [
        ("2026-11-01T00:00-0800/2026-12-01T00:00-0800", "299.00 EUR", 0),
        ("2026-11-01/2026-12-01", "299.00 EUR", 0),
        ("2026-12-01T00:00-0800/2026-12-24T00:00-0800", None, 0),
        ("2026-10-01/2026-11-20T11:00Z", None, 0),
        ("soon", None, 1),
        ("tomorrow/later", None, 1),
    ],
)
def test_a_sale_price_applies_during_its_period(reader: Any, span: str, price: str | None, count: int) -> None:
    """It is NOON of 2026-11-20 in tests."""
    dates = f"<g:sale_price_effective_date>{span}</g:sale_price_effective_date>"
    ((table, rows),) = reader(RSS.format(build_item(dates)).encode())
    assert rows[0][1][table.headers.index("sale_price")] == price
    assert len(reader.context.reports) == count


@pytest.mark.parametrize("titled", [False, True])
def test_a_table(reader: Any, titled: bool) -> None:
    headers = ["id", "title", "link", "image_link", "price", "availability", "shipping_weight", "item_group_id", "mpn"]
    names = [header.replace("_", " ").title() for header in headers] if titled else headers
    row = ["A-1", "Stool", "https://a.example", "https://a.example/1.jpg", "12,50 EUR", "in stock", "4 kg", "", "M-1"]
    ((table, rows),) = reader("\n".join("\t".join(line) for line in (names, row)).encode())
    made = read_product(table, rows)
    (variant,) = made.variants
    assert made.key == variant.key == "A-1"
    assert "weight" not in variant.data and variant.data["cartons"][0]["weight"]
    assert "sku" not in variant.data, "an id that the maker does not share may be anybody's number"
    assert variant.offers[0].data["price"] == 1250


def test_a_feed_is_read_as_plain_xml_if_settings_require_it(reader: Any) -> None:
    ((table, _),) = reader(RSS.format(build_item()).encode(), format="xml")
    assert table.fields is None


def test_other_tables_are_not_treated_as_merchant_feeds(reader: Any) -> None:
    ((table, _),) = reader(b"id\ttitle\tprice\n1\tStool\t12\n")
    assert table.fields is None


def test_more_than_one_product_type(reader: Any) -> None:
    twice = build_item().replace("<g:brand>", "<g:product_type>Outlet</g:product_type><g:brand>")
    ((table, rows),) = reader(RSS.format(twice + twice).encode())
    assert rows[0][1][table.headers.index("product_type")] == "Outlet"
    assert [report.column for report in reader.context.reports] == ["product_type"]


def test_every_meaning_is_a_field() -> None:
    for entry in filter(None, FIELD_BY_ATTRIBUTE.values()):
        assert base_field(entry) in DECLARED_FIELDS
        assert is_field(parse_declared_field(entry)[0]), entry
