"""Pages that compare products and vendors, and public links to comparisons."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from domain.catalogue.categories import category_by_id
from domain.catalogue.licences import UNSHAREABLE_BASES
from domain.catalogue.model import ProductFilter
from domain.comparison.model import MAX_ITEMS, ComparedItem, ComparisonLink
from domain.comparison.ports import PdfFailed, PdfPrinter
from domain.comparison.usecases import ComparisonLinkService
from domain.comparison.vendors import MAX_SUMMARISED_PRODUCTS, VendorSummary, summarise_vendor
from domain.kernel.errors import NotFound, Unavailable
from domain.kernel.ids import is_id
from domain.kernel.tenancy import Tenant
from domain.kernel.units import UNIT_SYSTEMS
from domain.media.ports import MediaStore
from domain.people.usecases.attempt_limits import find_counted_network
from domain.secrets.keys import ActiveKeys
from entrypoints.console.comparison import (
    ComparisonColumn,
    ComparisonQuery,
    ProductDocument,
    build_column,
    build_missing_column,
    build_rows,
    build_source_columns,
)
from entrypoints.console.context import OperationRefused, PageContext, Pages
from entrypoints.console.pages.catalogue import format_variant_title
from entrypoints.console.pages.sources import READ_SCOPE, find_source_names, load_sources
from entrypoints.console.products import PICTURES_PATH, find_title
from entrypoints.console.rendering import format_category, get_static_files, render_template
from entrypoints.console.security import ValueSigner, build_file_headers
from entrypoints.console.translation import N_, get_current_locale, gettext
from entrypoints.http.exchange import Response
from entrypoints.settings import Settings
from ports.clock import Clock
from ports.limits import RateLimitBucket
from ports.objects import ObjectMissing, ObjectStore
from ports.unit_of_work import UnitOfWork

SHARED_PATH: Final = "/console/shared/"
"""Start of the path of a public link; the signed ID follows."""
_LINK_PURPOSE = "comparison link"
_UNITS_COOKIE = "joinery-units"
"""Name of the cookie with the person's unit system."""
_YEAR_SECONDS = 365 * 24 * 3600
_PICTURE_WIDTH = 320
_MAX_PICTURE_BYTES = 2 << 20
"""Maximum size of a picture in a PDF; larger ones are omitted."""
_MAX_FOUND = 8
"""Maximum number of products that a search lists."""
_PAGE_SIZE = 100
_STYLESHEET, _FONT = "comparison.css", "vendor/inter.woff2"
_FILES_URL = "https://files.invalid/"
"""Start of the URLs of the files that a PDF contains; the domain does not exist (RFC 2606)."""
_LINK_ENDED = N_("This link has expired or was revoked. Ask for a new one.")

pages = Pages("/console", section=N_("Catalogue"), scope="products:read")


@pages.register_get("/catalogue/compare", title=N_("Compare"))
async def compare_products(page: PageContext) -> Response:
    """Show products, or the offers of one product's sources, side by side."""
    return await _render_comparison(page, _read_query(page))


async def _render_comparison(page: PageContext, query: ComparisonQuery) -> Response:
    sources = await load_sources(page)
    columns = await _load_columns(page, query, sources)
    async with page.open_read_transaction() as tx:
        links = await ComparisonLinkService().list_open(tx)
    shareable = await _select_shareable(page, columns, sources)
    response = page.render(
        "comparison/compare.html",
        image_origins=page.console.object_origins,
        query=query,
        columns=columns,
        found=await _search_products(page),
        q=page.query["q"][:100],
        links=[(link, page.dependencies[Settings].base_url + _build_link_path(page, link)) for link in links],
        excluded=[column.item.title for column in columns if column.item.is_found and column not in shareable],
        can_share=bool(shareable),
        can_print=bool(columns) and await page.dependencies[PdfPrinter].is_available(),
        max_items=MAX_ITEMS,
        **build_table_values(
            [column.item for column in columns],
            [f"{PICTURES_PATH}{column.item.image}?w={_PICTURE_WIDTH}" for column in columns],
            query.units,
            shows_cost=query.shows_cost,
            only_differences=query.only_differences,
        ),
    )
    if page.query["units"] in UNIT_SYSTEMS:
        response.headers.append(page.cookies.build_header(_UNITS_COOKIE, query.units, _YEAR_SECONDS))
    return response


def build_table_values(
    items: Sequence[ComparedItem],
    picture_urls: Sequence[str],
    units: str,
    *,
    shows_cost: bool,
    only_differences: bool,
) -> dict[str, Any]:
    """Return the variables of the template `comparison/table.html`."""
    rows = build_rows(items, units, shows_cost=shows_cost)
    shown = [row for row in rows if row.differs] if only_differences else rows
    return {
        "items": items,
        "pictures": [url if item.image else "" for item, url in zip(items, picture_urls, strict=True)],
        "rows": shown,
        "equal_count": len(rows) - len(shown),
        "marks_differences": sum(item.is_found for item in items) > 1,
    }


def _read_query(page: PageContext) -> ComparisonQuery:
    """Return the state in the query string, or in the submitted form; the unit system is by default the person's."""
    by_language = "imperial" if get_current_locale().language == "en" else "metric"
    stored = page.request.cookies.get(_UNITS_COOKIE, "")
    return ComparisonQuery.from_form(
        page.form if page.is_post else page.query, stored if stored in UNIT_SYSTEMS else by_language
    )


async def _load_columns(
    page: PageContext, query: ComparisonQuery, sources: Mapping[str, Any]
) -> list[ComparisonColumn]:
    """Return the columns of a comparison. IDs of other organisations are not found, like unknown ones."""
    documents = await _load_documents(page, query.items)
    names = {id: source["name"] for id, source in sources.items()}
    catalogues = page.principal.organisation.catalogues
    if query.by_source:
        document = documents[0] if documents else None
        return build_source_columns(document, query.items[0], names, catalogues) if document else []
    return [
        build_missing_column(item)
        if document is None
        else build_column(document, item, names, catalogues, format_variant_title)
        for item, document in zip(query.items, documents, strict=True)
    ]


async def _load_documents(page: PageContext, items: Iterable[str]) -> list[ProductDocument | None]:
    """Return the products of the items, or None for those that the organisation cannot read."""
    ids = [item.partition(":")[0] for item in items]
    wanted = [id for id in dict.fromkeys(ids) if is_id("prod", id)]
    if not wanted:
        return [None] * len(ids)
    body = await page.api.get_bytes("/v1/products", id=",".join(wanted), limit=MAX_ITEMS)
    listed = msgspec.json.decode(
        msgspec.json.decode(body, type=dict[str, msgspec.Raw])["data"], type=list[dict[str, msgspec.Raw]]
    )
    found = {msgspec.json.decode(parts["id"], type=str): parts for parts in listed}
    for id in wanted:  # products that were merged into others, or that a page of limited size omits
        if id not in found:
            try:
                found[id] = msgspec.json.decode(
                    await page.api.get_bytes(f"/v1/products/{id}"), type=dict[str, msgspec.Raw]
                )
            except OperationRefused as refused:
                if refused.status != 404:
                    raise
    return [ProductDocument.from_parts(dict(found[id])) if id in found else None for id in ids]


async def _search_products(page: PageContext) -> list[tuple[str, str, str]]:
    """Return ID, title and brand of the products that match the search query; none without a query."""
    q = page.query.get("q")[:100]
    if not q:
        return []
    try:
        found = await page.api.get("/v1/products", q=q, limit=_MAX_FOUND)
    except OperationRefused as refused:
        if refused.status != 400:
            raise
        page.refused = refused
        return []
    return [(product["id"], find_title(product), product["data"].get("brand") or "") for product in found["data"]]


async def _select_shareable(
    page: PageContext, columns: Sequence[ComparisonColumn], sources: Mapping[str, Any]
) -> list[ComparisonColumn]:
    """Return the columns that a public link may contain.

    Data of other organisations' catalogues never leaves the organisation, nor that of sources whose licence basis does not
    permit it (`UNSHAREABLE_BASES`), which includes followed catalogues.
    """
    own = [column for column in columns if column.is_own and column.sources]
    found = dict(sources)
    for id in sorted({id for column in own for id in column.sources} - found.keys()):
        if page.may(READ_SCOPE) and (source := await page.get_visible(f"/v1/sources/{id}")):
            found[id] = source
    permitted = {id for id, source in found.items() if source["licence_basis"] not in UNSHAREABLE_BASES}
    return [column for column in own if column.sources <= permitted]


@pages.register_post("/catalogue/compare/links", error_view=compare_products)
async def create_link(page: PageContext) -> Response:
    """Create a public link to the comparison as it is now."""
    query = _read_query(page)
    sources = await load_sources(page)
    columns = await _select_shareable(page, await _load_columns(page, query, sources), sources)
    async with page.open_transaction("comparison_links.create") as tx:
        await ComparisonLinkService().create(
            tx,
            page.principal,
            [column.item for column in columns],
            includes_cost=page.form["include_cost"] == "true",
            units=query.units,
            only_differences=query.only_differences,
        )
    return page.redirect(
        f"{query.build_url()}#links", gettext("Link created. Anybody who has it can open it for 30 days.")
    )


@pages.register_post("/catalogue/compare/links/<id>/revoke")
async def revoke_link(page: PageContext) -> Response:
    """Revoke a public link."""
    async with page.open_transaction("comparison_links.revoke") as tx:
        await ComparisonLinkService().revoke(tx, page.principal, page.path_parameters["id"])
    return page.redirect(f"{_read_query(page).build_url()}#links", gettext("Link revoked"))


@pages.register_get("/catalogue/compare/pdf")
async def print_comparison(page: PageContext) -> Response:
    """Return the comparison as PDF."""
    query = _read_query(page)
    tenant, printer = page.principal.tenant, page.dependencies[PdfPrinter]
    await page.take_token(RateLimitBucket(f"comparison-pdf:{tenant.org}", 10, 1 / 6))
    columns = await _load_columns(page, query, await load_sources(page))
    if not columns or not await printer.is_available():
        raise NotFound
    static = get_static_files()
    files = {f"{_FILES_URL}{name}": static.read(name) for name in (_STYLESHEET, _FONT)}
    urls = []
    for index, column in enumerate(columns):
        url, content = f"{_FILES_URL}{index}.webp", await _read_picture(page, tenant, column.item.image)
        files |= {url: content} if content else {}
        urls.append(url if content else "")
    html = render_template(
        "comparison/print.html",
        None,
        {"query": query, "stylesheet": f"{_FILES_URL}{_STYLESHEET}", "printed_at": page.dependencies[Clock].now()}
        | build_table_values(
            [column.item for column in columns],
            urls,
            query.units,
            shows_cost=query.shows_cost,
            only_differences=query.only_differences,
        ),
    )
    try:
        pdf = await printer.print_pdf(html, files)
    except PdfFailed as error:
        raise Unavailable(
            gettext("The PDF could not be created. Compare fewer products, or print this page.")
        ) from error
    name = f"comparison-{page.dependencies[Clock].now():%Y-%m-%d}.pdf"
    return Response(200, build_file_headers("application/pdf", name), pdf)


async def _read_picture(page: PageContext, tenant: Tenant, image: str) -> bytes | None:
    """Return the smallest sufficient rendition of a stored image; None if there is none, or if it is too large."""
    if not image:
        return None
    async with page.dependencies[UnitOfWork].begin_reading(tenant) as tx:
        found = await tx[MediaStore].get_image(image)
    if found is None:
        return None
    candidates = [(one.key, one.bytes) for one in found.renditions if one.width >= _PICTURE_WIDTH]
    key, size = (candidates or [(found.key, found.bytes)])[0]
    if size > _MAX_PICTURE_BYTES:
        return None
    try:
        return b"".join([chunk async for chunk in page.dependencies[ObjectStore].read(key)])
    except (ObjectMissing, Unavailable):
        return None


def _create_signer(page: PageContext) -> ValueSigner:
    """Return the signer of public links. Its former keys stay valid for 30 days, the lifetime of a link."""
    return ValueSigner(page.dependencies[ActiveKeys].cursor_keys)


def _build_link_path(page: PageContext, link: ComparisonLink) -> str:
    tenant = page.principal.tenant
    return SHARED_PATH + _create_signer(page).sign_value(_LINK_PURPOSE, [tenant.org, tenant.livemode, link.id])


async def _find_link(page: PageContext) -> tuple[Tenant, ComparisonLink]:
    """Return the open link in the path, and its tenant. Raises RateLimited; NotFound, whatever the reason is."""
    await page.take_token(RateLimitBucket(f"shared:{find_counted_network(page.client_info.address)}", 120, 2))
    signed = _create_signer(page).read_signed_value(_LINK_PURPOSE, page.path_parameters["signed"])
    if signed is None:
        raise NotFound(gettext(_LINK_ENDED))
    org, livemode, id = signed
    tenant = Tenant(org, livemode)
    async with page.dependencies[UnitOfWork].begin_reading(tenant) as tx:
        link = await ComparisonLinkService().find_open(tx, id)
    if link is None:
        raise NotFound(gettext(_LINK_ENDED))
    return tenant, link


@pages.register_get("/shared/<signed>", section=None, scope=None, audience="anybody")
async def show_shared_comparison(page: PageContext) -> Response:
    """Show the stored comparison of a public link to anybody."""
    _, link = await _find_link(page)
    path = SHARED_PATH + page.path_parameters["signed"]
    response = page.render(
        "comparison/shared.html",
        image_origins=page.console.object_origins,
        link=link,
        **build_table_values(
            link.items,
            [f"{path}/pictures/{index}" for index in range(len(link.items))],
            link.units,
            shows_cost=link.includes_cost,
            only_differences=link.only_differences,
        ),
    )
    response.headers.append((b"x-robots-tag", b"noindex, nofollow"))
    return response


@pages.register_get("/shared/<signed>/pictures/<index>", section=None, scope=None, audience="anybody")
async def redirect_to_shared_image(page: PageContext) -> Response:
    """Redirect to the stored picture of an item of a public link."""
    tenant, link = await _find_link(page)
    index = page.path_parameters["index"]
    item = link.items[int(index)] if index.isdecimal() and len(index) < 3 and int(index) < len(link.items) else None
    if item is None or not item.image:
        raise NotFound
    async with page.dependencies[UnitOfWork].begin_reading(tenant) as tx:
        media = await page.get_service("media").get(tx, item.image)
    sizes = zip(media.image.renditions, media.rendition_urls, strict=True)
    url = next((url for rendition, url in sizes if rendition.width >= _PICTURE_WIDTH), media.url)
    headers = [(b"location", url.encode("ascii", "ignore")), (b"cache-control", b"private, max-age=600")]
    return Response(302, headers)


@pages.register_get("/catalogue/compare/vendors")
async def compare_vendors(page: PageContext) -> Response:
    """Show averages over the products of two sources side by side."""
    names = await find_source_names(page)
    ids = [id for id in dict.fromkeys((page.query["first"], page.query["second"])) if id in names]
    filters = page.query.select("brand", "category")
    filters = {name: value[:200] for name, value in filters.items()}
    summaries: list[tuple[str, VendorSummary, bool]] = []
    try:
        for id in ids:
            products, is_complete = await _list_vendor_products(page, id, filters)
            summaries.append((id, await asyncio.to_thread(summarise_vendor, products, id), is_complete))
    except OperationRefused as refused:
        if refused.status != 400:
            raise
        page.refused, summaries = refused, []
    async with page.open_read_transaction() as tx:
        counts = await page.get_service("catalogue").count_filter_values(tx, ProductFilter())
    return page.render(
        "comparison/vendors.html",
        status=200,
        source_names=names,
        ids=ids,
        filters=filters,
        summaries=summaries,
        brands=[brand for brand, _ in counts.brands],
        categories=[(id, format_category(id)) for id, _ in counts.categories if id in category_by_id()],
        max_products=MAX_SUMMARISED_PRODUCTS,
    )


async def _list_vendor_products(page: PageContext, source: str, filters: Mapping[str, str]) -> tuple[list[Any], bool]:
    """Return the newest products of a source, at most MAX_SUMMARISED_PRODUCTS, and whether these are all."""
    products: list[Any] = []
    cursor = None
    for _ in range(2 * MAX_SUMMARISED_PRODUCTS // _PAGE_SIZE):
        body = await page.api.get_bytes(
            "/v1/products", source=source, limit=_PAGE_SIZE, starting_after=cursor, **filters
        )
        found = await asyncio.to_thread(msgspec.json.decode, body)
        products += found["data"]
        cursor = found["next_cursor"]
        if not found["has_more"] or len(products) >= MAX_SUMMARISED_PRODUCTS:
            break
    return products[:MAX_SUMMARISED_PRODUCTS], cursor is None and len(products) <= MAX_SUMMARISED_PRODUCTS
