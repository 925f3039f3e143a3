"""Product list: filters, order, columns, saved views, and actions on selected products."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from itertools import islice
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from domain.bulk_actions.model import MAX_PRODUCTS, BulkAction, BulkActionKind
from domain.bulk_actions.usecases.execution import start_bulk_action
from domain.catalogue import categories
from domain.catalogue.completions import Completions
from domain.catalogue.filter_counts import FilterCounts
from domain.kernel.errors import DomainError, InvalidRequest, NotFound
from domain.kernel.money import EXPONENTS
from domain.orgs.model import VENDOR
from domain.saved_views.model import SavedView
from domain.saved_views.usecases.service import SavedViewService
from entrypoints.areas.catalogue import parse_product_filter
from entrypoints.console.context import OperationRefused, PageContext, Pages
from entrypoints.console.pages.sources import find_source_names
from entrypoints.console.product_query import (
    ALL_VIEW,
    COLUMNS,
    FACETS,
    LIST_PATH,
    SORTS,
    Facet,
    ProductQuery,
)
from entrypoints.console.products import build_product_row, find_title
from entrypoints.console.rendering import format_money, format_number
from entrypoints.console.request import parse_query
from entrypoints.console.translation import N_, gettext, ngettext
from entrypoints.http.exchange import Response

Json = Mapping[str, Any]
_EMPTY_PAGE: Final[Json] = {"data": [], "has_more": False, "next_cursor": None, "total_count": None}
_PAGE_SIZE = 30
_OPEN_FACETS = 4
"""Number of facets that are open without a selected value."""
_LISTED_VALUES = 8
"""Number of values of a facet that are shown until the person opens the others."""
_PREVIEWED_PRODUCTS = 1_000
"""Maximum number of products whose change of visibility is previewed."""
_NAMED_PRODUCTS = 5
"""Number of products that the confirmation of an action names."""
_MAX_LINKED_PRODUCTS = 500
"""Maximum number of products in the address of a page; more are sent as a form."""
_MAX_ACTIVE_FILTERS = 30
"""Maximum number of selected values above the list, each of which has a link with all others."""
_MAX_AMOUNT_DIGITS = 18
"""Maximum number of digits of an amount in a filter."""
_PRODUCT_ID = re.compile(r"prod_[0-9A-Za-z]{22}")
_SHARE_SCOPE = "products:write"
"""Scope that is required to share a view with the organisation."""

pages = Pages("/console", section=N_("Catalogue"), scope="products:read")


class FacetOption(NamedTuple):
    """Value of a facet.

    Attributes:
        id: The ID of the element.
        value: The value of the query parameter.
        label: The text.
        product_count: The number of products; None if the value is selected and not counted.
        is_selected: Whether the list is filtered by the value.
        depth: The depth in the category tree.
    """

    id: str
    value: str
    label: str
    product_count: int | None
    is_selected: bool
    depth: int = 0


class SelectionAction(NamedTuple):
    """Action on selected products.

    Attributes:
        name: The value in the form.
        label: The button's text, as a message to translate.
        page: The path of the page that performs the action; the action is not offered if there is no such page. Empty for
            actions that are executed in the background.
        products_parameter: The query parameter of the page with the IDs of the products, separated by commas.
        field: The query parameter `field` of the page; empty for none.
        scope: The scope that the person's role must include.
        organisation_kind: The kind of organisations that have the action; None for all.
        max_products: The maximum number of products.
    """

    name: str
    label: str
    page: str = ""
    products_parameter: str = "products"
    field: str = ""
    scope: str | None = None
    organisation_kind: str | None = None
    max_products: int = MAX_PRODUCTS

    def is_offered(self, page: PageContext) -> bool:
        """Return whether the person can perform the action."""
        has_page = not self.page or any(
            one.path_pattern == self.page and page.may(one.scope) for one in page.console.pages
        )
        kind = page.principal.organisation.kind
        return has_page and page.may(self.scope) and self.organisation_kind in (None, kind)


ACTIONS: Final = (
    SelectionAction("compare", N_("Compare"), f"{LIST_PATH}/compare", max_products=8),
    SelectionAction("export", N_("Export"), f"{LIST_PATH}/export", "id", max_products=100),
    SelectionAction("correct", N_("Correct values"), f"{LIST_PATH}/correct"),
    SelectionAction("category", N_("Set category"), f"{LIST_PATH}/correct", field="product:category"),
    SelectionAction("list", N_("List for retailers"), scope="catalogue:write", organisation_kind=VENDOR),
    SelectionAction("hide", N_("Hide from retailers"), scope="catalogue:write", organisation_kind=VENDOR),
    SelectionAction("rematch", N_("Match again"), scope="products:write"),
)  # fmt: skip
"""Actions on selected products, in order."""


@pages.register_get("/catalogue", title=N_("Products"))
async def list_products(page: PageContext) -> Response:
    """Show the list of products, or only the element of the page that htmx requests."""
    part, person = page.request.element_id, page.person.user.id
    state = parse_query(page.form["query"]) if page.is_post else page.query
    query, cursor = ProductQuery.from_query(state), state.get("cursor")
    views, default_view = await _read_views(page)
    view = next((one for one in views if one.id == state["view"]), None)
    if not (page.is_post or state.pairs) and (default := next((one for one in views if one.id == default_view), None)):
        return page.redirect(_build_view_path(default))
    view_name = view.id if view else ALL_VIEW if default_view else ""
    all_path = f"{LIST_PATH}?view={ALL_VIEW}" if default_view else LIST_PATH
    counts, names = None, dict[str, str]()
    has_amounts = any(name in query.filters for name in ("min_price", "max_price"))
    if part != "results" or (has_amounts and not query.get("currency")):
        counts, names = await asyncio.gather(_count_filters(page, query), find_source_names(page))
        query = _with_currency(query, counts)
    found, completions = _EMPTY_PAGE, list[str]()
    if part != "filters":
        try:
            found, completions = await _find_products(page, query, cursor)
        except OperationRefused as error:
            if error.status != 400:
                raise
            page.refused = error
        names = names or (await find_source_names(page) if "source" in query.filters else {})
    response = page.render(
        "catalogue/products.html",
        status=None if page.is_post else 200,
        image_origins=page.console.object_origins,
        query=query,
        cursor=cursor,
        results=found,
        total=_format_total(found["total_count"]),
        rows=[
            build_product_row(product, query.columns, query.filters.get("availability", ()))
            for product in found["data"]
        ],
        columns=[column for column in COLUMNS if column.name in query.columns],
        all_columns=COLUMNS,
        sorts=SORTS,
        completions=completions,
        facets=[(facet, *_build_facet(facet, query, counts, names)) for facet in FACETS] if counts else [],
        open_facets=_OPEN_FACETS,
        listed_values=_LISTED_VALUES,
        counts=counts,
        active_filters=[
            (facet, _label_filter(facet, value, query, names), rest)
            for facet, value, rest in islice(query.list_active(), _MAX_ACTIVE_FILTERS)
        ],
        views=views,
        view=view,
        default_view=default_view,
        view_name=view_name,
        view_tabs=[
            (gettext("All products"), all_path, view is None),
            *((one.name, _build_view_path(one), one is view) for one in views),
        ],
        is_modified=view is not None and view.query != query.encode(),
        all_path=all_path,
        can_share=page.may(_SHARE_SCOPE),
        person=person,
        actions=[action for action in ACTIONS if action.is_offered(page)],
        max_products=MAX_PRODUCTS,
        export_query=query.build_export_query(),
    )
    if part != "results":
        return response
    address = query.build_path(view=view_name).encode()
    return replace(response, headers=[*response.headers, (b"hx-replace-url", address)])


async def _read_views(page: PageContext) -> tuple[Sequence[SavedView], str | None]:
    """Return the views that the person sees, and the ID of the person's default view."""
    service, person = SavedViewService(), page.person.user.id
    async with page.open_read_transaction() as tx:
        return await service.list_visible(tx, person), await service.get_default(tx, person)


def _build_view_path(view: SavedView) -> str:
    """Return the path of the list in the state of a view."""
    return ProductQuery.from_query(parse_query(view.query)).build_path(view=view.id)


async def _find_products(page: PageContext, query: ProductQuery, cursor: str) -> tuple[Json, list[str]]:
    """Return a page of products, and completions of the search query.

    If the page is not full, it also contains products that match a completion of the query's last word.
    """
    filters, q = query.build_api_filters(), query.get("q")
    options = {"limit": _PAGE_SIZE, "sort": query.sort, "include": "total_count"}
    found = await page.api.get("/v1/products", starting_after=cursor or None, **options, **filters)
    if not q or found["has_more"] or cursor:
        return found, []
    service = page.get_service("catalogue")
    async with page.open_read_transaction() as tx:
        queries: list[str] = await service.complete_query(tx, q, parse_product_filter(urlencode(filters)))
        completions: Completions = await service.find_completions(tx, q)
    further_queries: list[dict[str, Any]] = [{"q": one} for one in queries[:2]]
    if completions.variants:
        further_queries.insert(0, {"variant": ",".join(completions.variants), "q": None})
    product_by_id = {product["id"]: product for product in found["data"]}
    for further_query in further_queries:
        if len(product_by_id) < _PAGE_SIZE:
            more = await page.api.get("/v1/products", **options, **filters | further_query)
            product_by_id |= {one["id"]: one for one in more["data"] if one["id"] not in product_by_id}
    products = list(product_by_id.values())[:_PAGE_SIZE]
    return {**_EMPTY_PAGE, "data": products, "total_count": {"count": len(products), "is_exact": True}}, queries


async def _count_filters(page: PageContext, query: ProductQuery) -> FilterCounts | None:
    """Count the products by value of each facet; None if a filter is invalid.

    If no product matches, those that match the first completion of the query are counted.
    """
    filters, service = query.build_api_filters(), page.get_service("catalogue")
    if "currency" not in filters:  # amounts require a currency, which the counts determine
        filters = {name: value for name, value in filters.items() if name not in ("min_price", "max_price")}
    try:
        filter = parse_product_filter(urlencode(filters))
        async with page.open_read_transaction() as tx:
            found: FilterCounts = await service.count_filter_values(tx, filter)
            if not found.counted_products and filter.q:
                queries = await service.complete_query(tx, filter.q, filter)
                if queries:
                    found = await service.count_filter_values(tx, replace(filter, q=queries[0]))
    except DomainError:
        return None  # the list shows the error
    return found


def _with_currency(query: ProductQuery, counts: FilterCounts | None) -> ProductQuery:
    """Return the query with the most frequent currency if it limits the price without a currency."""
    has_amounts = any(name in query.filters for name in ("min_price", "max_price"))
    if not has_amounts or query.get("currency") or counts is None or not counts.prices:
        return query
    return replace(query, filters=query.with_filter("currency", counts.prices[0].currency))


def _format_total(total: Json | None) -> str:
    """Format the number of products: `762 products`, `10,000+ products`; empty if it is unknown."""
    if total is None:
        return ""
    count = format_number(total["count"]) + ("" if total["is_exact"] else "+")
    return ngettext("%(count)s product", "%(count)s products", total["count"], count=count)


def _build_facet(
    facet: Facet, query: ProductQuery, counts: FilterCounts, names: Mapping[str, str]
) -> tuple[Sequence[Any], bool]:
    """Return the options of a facet, or the prices of a range, and whether the facet has a selected value."""
    counted = getattr(counts, facet.counts)
    if facet.kind == "range":
        return counted, any(name in query.filters for name in ("currency", f"min_{facet.name}", f"max_{facet.name}"))
    selected, count_by_value = query.filters.get(facet.name, ()), dict(counted)
    values = [*(value for value in selected if value not in count_by_value), *count_by_value]
    tree = categories.category_by_id()
    if facet.kind == "tree":
        order = {id: index for index, id in enumerate(tree)}
        values.sort(key=lambda category: order.get(category, -1))
    options = [
        FacetOption(
            # the same in each response, so that the focus stays
            f"{facet.name}-{blake2b(value.encode('utf-8', 'replace'), digest_size=5).hexdigest()}",
            value,
            facet.label_value(value, names),
            count_by_value.get(value),
            value in selected,
            len(tree[value].ancestors) if facet.kind == "tree" and value in tree else 0,
        )
        for value in values
    ]
    if facet.kind == "tree":
        return options, bool(selected)
    return sorted(options, key=lambda option: not option.is_selected), bool(selected)


def _label_filter(facet: Facet, value: str, query: ProductQuery, names: Mapping[str, str]) -> str:
    """Return the label of a selected value, or of the bounds of a range."""
    if facet.kind != "range":
        return facet.label_value(value, names)
    code = query.get("currency").lower()
    filters = query.build_api_filters()
    bounds = [filters.get(f"{bound}_{facet.name}", "") for bound in ("min", "max")]
    # A bound that is not an amount is shown as it was entered, with the error of the API.
    texts = [
        format_money({"amount": int(bound), "currency": code})
        if code in EXPONENTS and bound.isdecimal() and len(bound) <= _MAX_AMOUNT_DIGITS
        else bound[:_MAX_AMOUNT_DIGITS]
        for bound in bounds
    ]
    if texts[0] and texts[1]:
        return gettext("%(first)s to %(last)s", first=texts[0], last=texts[1])
    if texts[0]:
        return gettext("from %(price)s", price=texts[0])
    return gettext("up to %(price)s", price=texts[1]) if texts[1] else code.upper()


@pages.register_post("/catalogue/views", error_view=list_products)
async def create_view(page: PageContext) -> Response:
    """Save the state of the list as a view."""
    service, query = SavedViewService(), ProductQuery.from_query(parse_query(page.form["query"]))
    is_shared = bool(page.form["shared"])
    if is_shared:
        page.require_scope(_SHARE_SCOPE)
    async with page.open_transaction("saved_views.create") as tx:
        view = await service.create(tx, page.form["name"], query.encode(), is_shared=is_shared)
        if page.form["default"]:
            await service.set_default(tx, view.id)
    return page.redirect(_build_view_path(view), gettext("View saved"))


@pages.register_post("/catalogue/views/<id>", error_view=list_products)
async def change_view(page: PageContext) -> Response:
    """Change or delete a saved view, or make it the person's default."""
    service, id, action = SavedViewService(), page.path_parameters["id"], page.form["action"]
    if action == "share":
        page.require_scope(_SHARE_SCOPE)
    async with page.open_transaction(f"saved_views.{'delete' if action == 'delete' else 'update'}") as tx:
        view = await service.get(tx, id, page.person.user.id)
        match action:
            case "delete":
                await service.delete(tx, id)
                return page.redirect(f"{LIST_PATH}?view={ALL_VIEW}", gettext("View deleted"))
            case "save":
                query = ProductQuery.from_query(parse_query(page.form["query"]))
                view = await service.update(tx, id, {"query": query.encode()})
            case "rename":
                view = await service.update(tx, id, {"name": page.form["name"]})
            case "share" | "unshare":
                view = await service.update(tx, id, {"is_shared": action == "share"})
            case "default" | "reset":
                await service.set_default(tx, id if action == "default" else None)
            case _:
                raise NotFound
    return page.redirect(_build_view_path(view), gettext("View saved"))


@pages.register_post("/catalogue/selection", error_view=list_products)
async def act_on_selection(page: PageContext) -> Response:
    """Show the page of an action with the selected products, or the preview of an action; if confirmed, start the action."""
    action = next((one for one in ACTIONS if one.name == page.form["action"]), None)
    if action is None or not action.is_offered(page):
        raise NotFound
    products = await _list_selected(page)
    if not 0 < len(products) <= action.max_products:
        detail = gettext("Select 1 to %(count)s products.", count=format_number(action.max_products))
        raise page.to_refused(InvalidRequest.for_field("products", "invalid_value", detail))
    if action.page and len(products) <= _MAX_LINKED_PRODUCTS:
        parameters = {action.products_parameter: ",".join(products)} | ({"field": action.field} if action.field else {})
        return page.redirect(f"{action.page}?{urlencode(parameters)}")
    if page.form["confirmed"] and not action.page:
        async with page.open_transaction("bulk_actions.start") as tx:
            started = await start_bulk_action(tx, BulkActionKind(action.name), products)
        return page.redirect(f"{LIST_PATH}/actions/{started.id}")
    preview = None
    if action.name in (BulkActionKind.LIST, BulkActionKind.HIDE):
        visibility = {"list": "listed", "hide": "hidden"}[action.name]
        body = {"visibility": visibility, "products": products[:_PREVIEWED_PRODUCTS]}
        preview = await page.api.post("/v1/catalogue/visibility", body, dry_run="true")
    named = await page.api.get("/v1/products", id=",".join(products[:_NAMED_PRODUCTS]), limit=_NAMED_PRODUCTS)
    return page.render(
        "catalogue/selection.html",
        action=action,
        products=products,
        titles=[find_title(product) for product in named["data"]],
        preview=preview,
        previewed_count=min(len(products), _PREVIEWED_PRODUCTS),
        query=page.form["query"],
    )


async def _list_selected(page: PageContext) -> list[str]:
    """Return the IDs of the selected products: all that match the list, or those of the form, without duplicates."""
    if page.form["all"] and not page.form["confirmed"]:
        query = ProductQuery.from_query(parse_query(page.form["query"]))
        filter = parse_product_filter(urlencode(query.build_api_filters()))
        async with page.open_read_transaction() as tx:
            return [*await page.get_service("catalogue").list_product_ids(tx, filter, MAX_PRODUCTS)]
    ids = page.form.split_values("products")
    return [id for id in dict.fromkeys(ids) if _PRODUCT_ID.fullmatch(id)]


@pages.register_get("/catalogue/actions/<id>")
async def show_action(page: PageContext) -> Response:
    """Show the progress of an action on many products."""
    async with page.open_read_transaction() as tx:
        action: BulkAction | None = await tx.store(BulkAction).get(page.path_parameters["id"])
    if action is None:
        raise NotFound
    return page.render(
        "catalogue/action.html", action=action, label=next(one.label for one in ACTIONS if one.name == action.kind)
    )
