"""Page that exports the products of a list with its filters: format, columns and preview."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from decimal import Decimal
from typing import Any, NamedTuple
from urllib.parse import urlencode

import msgspec

from domain.catalogue.model import ProductFilter, ProductSort
from domain.exports.columns import COLUMNS, DEFAULT_COLUMNS, TableBuilder, format_cell
from domain.exports.layout import ExportFormat, ExportLayout, ExportLocale, OmittedItem, RowLevel, UnitSystem
from domain.exports.templates import SHOPIFY_COLUMNS, GoogleMerchantTemplate, ShopifyTemplate, find_template_error
from domain.kernel.errors import InvalidRequest
from entrypoints.areas.exports import PRODUCT_LIST
from entrypoints.console.context import OperationRefused, PageContext, Pages
from entrypoints.console.pages.sources import find_source_names
from entrypoints.console.product_query import FACETS
from entrypoints.console.request import FormData
from entrypoints.console.security import CSRF_FIELD
from entrypoints.console.translation import get_current_locale, gettext
from entrypoints.http.exchange import Response
from entrypoints.operations.query_string import QueryParser

EXPORTS_PATH = "/console/organisation/exports"
SCHEDULES_PATH = f"{EXPORTS_PATH}/schedules"
_FORM_FIELDS = (CSRF_FIELD, "submission_id", "action")
_FILTER_NAMES = tuple(field.name for field in fields(ProductFilter))
_PREVIEWED_PRODUCTS, _PREVIEWED_ROWS = 5, 8
_QUERY_PARSER = QueryParser(PRODUCT_LIST)
_DECODE = msgspec.json.Decoder(float_hook=Decimal).decode

pages = Pages("/console/catalogue/export", section="Catalogue", scope="exports:write")


class TablePreview(NamedTuple):
    """First rows of a file, and the items among the first products that the file omits."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    omitted: Sequence[OmittedItem] = ()


def select_filters(fields: FormData) -> list[tuple[str, str]]:
    """Return the filters of the product list among the fields of a query or form, as pairs; a filter may occur several times."""
    return [(name, value) for name, value in fields.pairs if name in _FILTER_NAMES and value.strip()]


def parse_filters(pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return filters as JSON values; invalid values remain, so that the operation refuses them."""
    values, _ = _QUERY_PARSER.parse(urlencode(pairs))
    return values


def build_filter(pairs: Sequence[tuple[str, str]]) -> ProductFilter:
    """Return filters for a use case. Raises InvalidRequest if a value is invalid."""
    values, errors = _QUERY_PARSER.parse(urlencode(pairs))
    if errors:
        raise InvalidRequest(errors[0].detail, fields=errors)
    return ProductFilter(**_QUERY_PARSER.exclude_paging(values))


def parse_layout(fields: FormData) -> ExportLayout:
    """Return the layout in the fields of a query or form; unknown values and columns are ignored."""
    german = get_current_locale().language == "de"
    locale = fields.get("locale", "de" if german else "en")
    names = [name for value in fields.get_all("columns") for name in value.split(",")]
    layout_format = _choose(ExportFormat, fields.get("format"), ExportFormat.XLSX)
    return ExportLayout(
        layout_format,
        tuple(dict.fromkeys(name for name in names if name in COLUMNS)) or DEFAULT_COLUMNS,
        ExportLocale(locale) if locale in tuple(ExportLocale) else None,
        _choose(RowLevel, fields.get("row_by"), RowLevel.VARIANT),
        _choose(UnitSystem, fields.get("units"), UnitSystem.METRIC if german else UnitSystem.IMPERIAL),
        _choose(ProductSort, fields.get("sort"), ProductSort.NEWEST),
        fields.get("link_template") or None,
    )


def _choose(kind: Any, text: str, default: Any) -> Any:
    return kind(text) if text in tuple(kind) else default


def build_body(filters: Mapping[str, Any], layout: ExportLayout) -> dict[str, Any]:
    """Return the body that requests an export of products."""
    body: dict[str, Any] = {"kind": "products", "filters": filters, "format": layout.format, "sort": layout.sort}
    if layout.format == ExportFormat.JSONL:
        return body
    body["units"] = layout.units
    if layout.is_table:
        body |= {"columns": layout.columns, "row_by": layout.row_by}
        body |= {"locale": layout.locale} if layout.locale else {}
    if layout.format == ExportFormat.GOOGLE_MERCHANT_XML and layout.link_template:
        body["link_template"] = layout.link_template
    return body


def build_preview(
    layout: ExportLayout, products: Iterable[Mapping[str, Any]], source_names: Mapping[str, str]
) -> TablePreview:
    """Return the first rows of the file with these products."""
    if layout.is_table:
        table = TableBuilder(layout, source_names)
        rows = [
            [format_cell(cell, layout.locale) for cell in row]
            for product in products
            for row in table.build_rows(product)
        ]
        return TablePreview(table.headings, rows[:_PREVIEWED_ROWS])
    template: Any = (
        ShopifyTemplate(layout) if layout.format == ExportFormat.SHOPIFY_CSV else GoogleMerchantTemplate(layout)
    )
    items: list[Any] = []
    omitted: list[OmittedItem] = []
    for product in products:
        items += template.build_items(product)
        omitted += template.omitted
    names = (
        SHOPIFY_COLUMNS
        if layout.format == ExportFormat.SHOPIFY_CSV
        else tuple(dict.fromkeys(name for item in items for name, _ in item))
    )
    cells = [
        dict(zip(names, item, strict=True)) if layout.format == ExportFormat.SHOPIFY_CSV else dict(item)
        for item in items
    ]
    used = [name for name in names if any(item.get(name) is not None for item in cells)]
    rows = [[format_cell(item.get(name), None) for name in used] for item in cells[:_PREVIEWED_ROWS]]
    return TablePreview(used, rows, omitted[:_PREVIEWED_ROWS])


@pages.register_form()
async def export_view(page: PageContext) -> Response:
    """Show the form with a preview, or only the preview that htmx requests; if the form is submitted, start an export.

    A form with the action `preview` shows the page, for example with more selected products than a URL can contain.
    """
    page.require_scope("products:read")
    fields = page.form if page.is_post else page.query
    pairs, layout = select_filters(fields), parse_layout(fields)
    if page.must_process and fields["action"] == "schedule":
        chosen = [(name, value) for name, value in fields.pairs if name not in _FORM_FIELDS]
        return page.redirect(f"{SCHEDULES_PATH}/new?{urlencode(chosen)}")
    if page.must_process and fields["action"] != "preview":
        await page.api.post("/v1/exports", build_body(parse_filters(pairs), layout))
        return page.redirect(EXPORTS_PATH, gettext("Export started. You can leave this page."), tone="info")
    names = await find_source_names(page)
    return page.render(
        "catalogue/export.html",
        pairs=pairs,
        filters=describe_filters(pairs, names),
        layout=layout,
        columns=COLUMNS,
        preview=await _read_preview(page, pairs, layout, names),
        query=urlencode(pairs),
    )


def describe_filters(pairs: Iterable[tuple[str, str]], source_names: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return filters as names and texts for people; names of sources and categories replace their IDs."""
    facet_by_parameter = {facet.parameter: facet for facet in FACETS}
    names = {parameter: gettext(facet.label) for parameter, facet in facet_by_parameter.items()} | {
        "q": gettext("Search"),
        "id": gettext("Selected products"),
        "brand": gettext("Brand"),
        "currency": gettext("Currency"),
        "min_price": gettext("Minimum price"),
        "max_price": gettext("Maximum price"),
        "updated_since": gettext("Changed since"),
    }
    described = []
    for name, text in pairs:
        values, facet = text.split(","), facet_by_parameter.get(name)
        if name == "id":
            text = str(len(values))
        elif facet is not None and facet.has_labels:
            text = ", ".join(facet.label_value(value, source_names) for value in values)
        described.append((names.get(name, name), text))
    return described


async def _read_preview(
    page: PageContext, pairs: Sequence[tuple[str, str]], layout: ExportLayout, names: Mapping[str, str]
) -> TablePreview | None:
    """Return the preview; None without one, and with the error as `page.refused` if the filters are invalid."""
    if layout.format == ExportFormat.JSONL or (
        layout.format == ExportFormat.GOOGLE_MERCHANT_XML
        and (not layout.link_template or find_template_error(layout.link_template))
    ):
        return None
    filters: dict[str, list[str]] = {}
    for name, value in pairs:
        filters.setdefault(name, []).append(value)
    query = {name: ",".join(values) for name, values in filters.items()}
    if "id" in query:
        query["id"] = ",".join(query["id"].split(",")[:_PREVIEWED_PRODUCTS])
    try:
        found = _DECODE(await page.api.get_bytes("/v1/products", limit=_PREVIEWED_PRODUCTS, sort=layout.sort, **query))
    except OperationRefused as refused:
        page.refused = page.refused or refused
        return None
    return build_preview(layout, found["data"], names)
