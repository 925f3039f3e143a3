"""Pages of corrections: the correction of a field, the list of corrections, and bulk corrections."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from domain.catalogue.corrections import FIELDS_BY_LEVEL, Correction, CorrectionAction, FeedState, find_level
from domain.corrections.model import MAX_PRODUCTS, BatchAction, BatchPreview, CorrectionFilter
from domain.corrections.ports import CorrectionBatchStore, CorrectionStore
from domain.corrections.values import FieldKind, Rounding, find_kind, read_price_change, read_text
from domain.kernel.errors import DomainError, Unprocessable
from domain.kernel.ids import find_noun
from domain.kernel.paging import PageRequest
from entrypoints.areas.catalogue import parse_product_filter
from entrypoints.console.context import PageContext, Pages
from entrypoints.console.corrections import (
    CORRECTIONS,
    WRITE_SCOPE,
    build_field_form,
    describe_correction,
    find_field_label,
    format_value,
)
from entrypoints.console.pages.catalogue import show_product
from entrypoints.console.products import find_title
from entrypoints.console.rendering import ListPortion
from entrypoints.console.request import parse_query
from entrypoints.console.translation import N_, gettext, ngettext
from entrypoints.http.exchange import Response

CORRECTIONS_PATH = "/console/catalogue/corrections"
_PAGE_SIZE = 20
_LISTED_BATCHES = 5
_CATALOGUE_FILTERS = ("q", "brand", "category", "availability", "status", "source")
_OPERATION, _BULK_OPERATION = "catalogue.correct", "catalogue.correct_many"

pages = Pages("/console/catalogue", section=N_("Catalogue"), scope="products:read")


@pages.register_post("/<id>", scope=WRITE_SCOPE, error_view=show_product)
async def correct_field(page: PageContext) -> Response:
    """Set, lock or clear a field of a product, its variants or offers, or remove its correction."""
    form = page.form
    object, _, field = form["key"].partition(":")
    async with page.open_transaction(_OPERATION) as tx:
        if form["action"] == "remove":
            stored = await tx[CorrectionStore].list_of_objects([object])
            for correction in stored:
                if correction.field == field:
                    await CORRECTIONS.remove(tx, correction.id)
            notice = gettext("Correction removed")
        else:
            if form["action"] not in list(CorrectionAction):
                raise Unprocessable.for_field("action", "required", gettext("Select what to do with the field."))
            action = CorrectionAction(form["action"])
            value = read_text(field, form["value"], form["currency"]) if action == CorrectionAction.OVERRIDE else None
            changed = await CORRECTIONS.correct(tx, object, field, action, value)
            notice = gettext("Value corrected") if changed else gettext("Nothing changed")
    variant = form["variant"] if find_noun(form["variant"]) else ""
    query = f"?variant={variant}" if variant else ""
    return page.redirect(f"/console/catalogue/{page.path_parameters['id']}{query}", notice)


@pages.register_get("/corrections", title=N_("Corrections"))
async def list_corrections(page: PageContext) -> Response:
    """Show the corrections that match the filters, newest first, and the latest bulk corrections."""
    filters = page.query.select("field", "person", "state")
    filter = CorrectionFilter(
        field=filters.get("field"), made_by=filters.get("person"), feed_state=filters.get("state")
    )
    async with page.open_read_transaction() as tx:
        found = await CORRECTIONS.page(tx, PageRequest(_PAGE_SIZE, page.cursor), filter)
        counts = await CORRECTIONS.count_by_state(tx)
        people_ids = await tx[CorrectionStore].list_people()
        fields = await tx[CorrectionStore].list_fields()
        batches = (await tx[CorrectionBatchStore].page(PageRequest(_LISTED_BATCHES))).items
    titles = await _find_titles(page, found.items)
    return page.render(
        "catalogue/corrections.html",
        results={"data": found.items, "has_more": found.has_more, "next_cursor": found.next_key},
        titles=titles,
        names=await page.find_person_names([*people_ids, *(one.made_by for one in batches)]),
        counts=counts,
        fields=sorted(((name, find_field_label(name)) for name in fields), key=lambda one: one[1]),
        states=[FeedState.AGREES, FeedState.CHANGED, FeedState.UNCHANGED],
        batches=batches,
        filters=filters,
        find_level=find_level,
        find_field_label=find_field_label,
        format_value=format_value,
        describe_correction=describe_correction,
    )


async def _find_titles(page: PageContext, corrections: Sequence[Correction]) -> dict[str, tuple[str, str]]:
    """Return the ID and the title of the product that readers see, by the product of each correction."""
    ids = sorted({one.product for one in corrections})
    if not ids:
        return {}
    found = await page.api.get("/v1/products", id=",".join(ids), limit=_PAGE_SIZE)
    return {
        id: (product["id"], find_title(product))
        for product in found["data"]
        for id in (product["id"], *product.get("merged_from", ()))
    }


@pages.register_post("/corrections", scope=WRITE_SCOPE, error_view=list_corrections)
async def remove_corrections(page: PageContext) -> Response:
    """Remove the selected corrections."""
    async with page.open_transaction(_OPERATION) as tx:
        count = await CORRECTIONS.remove_many(tx, page.form.get_all("correction")[:_PAGE_SIZE])
    query = urlencode(parse_query(page.form["query"]).pairs)  # encoded again, since a form may contain anything
    notice = ngettext("%(count)s correction removed", "%(count)s corrections removed", count, count=count)
    return page.redirect(f"{CORRECTIONS_PATH}?{query}" if query else CORRECTIONS_PATH, notice)


@pages.register_get("/corrections/<id>")
async def show_batch(page: PageContext) -> Response:
    """Show the progress and the result of a bulk correction."""
    async with page.open_read_transaction() as tx:
        batch = await CORRECTIONS.get_batch(tx, page.path_parameters["id"])
    return page.render(
        "catalogue/correction_batch.html",
        batch=batch,
        person=(await page.find_person_names([batch.made_by]))[batch.made_by],
        field_label=find_field_label(batch.field),
        value_text=format_value(batch.field, batch.value) if batch.action == BatchAction.OVERRIDE else "",
        problems=ListPortion.from_items(batch.problems, page.query.get_number("from"), _PAGE_SIZE),
    )


@pages.register_form("/correct", scope=WRITE_SCOPE)
async def correct_many(page: PageContext) -> Response:
    """Show the form of a bulk correction of the selected products, its preview, and start it."""
    values = page.form if page.is_post else page.query
    products: Sequence[str] = values.split_values("products") or values.split_values("id")
    filters = page.query.select(*_CATALOGUE_FILTERS)
    if not products and filters:
        products = await _find_products(page, filters)
    level, _, field = values["field"].partition(":")
    preview: BatchPreview | None = None
    if page.must_process and values["step"] in ("preview", "apply"):
        action, value = _read_change(values, field)
        async with page.open_transaction(_BULK_OPERATION) as tx:
            if values["step"] == "apply":
                batch = await CORRECTIONS.apply(tx, products, field, action, value, level)
                return page.redirect(f"{CORRECTIONS_PATH}/{batch.id}", gettext("Bulk correction started"), tone="info")
            preview = await CORRECTIONS.preview(tx, products, field, action, value, level)
            tx.is_dry_run = True
    return page.render(
        "catalogue/correct.html",
        products=products,
        max_products=MAX_PRODUCTS,
        filters=filters,
        fields=[
            (name, [(f"{name}:{path}", find_field_label(path)) for path in paths])
            for name, paths in FIELDS_BY_LEVEL.items()
        ],
        field_key=values["field"],
        level=level,
        field_label=find_field_label(field),
        field_form=build_field_form(field)._replace(text=values["value"], currency=values["currency"])
        if field
        else None,
        is_price=find_kind(field) == FieldKind.MONEY,
        form=values,
        preview=preview,
        titles=await _find_previewed_titles(page, preview),
        roundings=Rounding,
        format_value=lambda value: format_value(field, value),
    )


async def _find_products(page: PageContext, filters: Mapping[str, str]) -> Sequence[str]:
    """Return the IDs of the products that match the filters of the product list."""
    async with page.open_read_transaction() as tx:
        try:
            found: Sequence[str] = await page.get_service("catalogue").list_product_ids(
                tx, parse_product_filter(urlencode(filters)), MAX_PRODUCTS + 1
            )
        except DomainError as error:
            page.refused = page.to_refused(error)
            return ()
    return found


async def _find_previewed_titles(page: PageContext, preview: BatchPreview | None) -> dict[str, str]:
    """Return the titles of the products in a preview by ID."""
    ids = sorted({one.product for one in preview.changes}) if preview else []
    found = (await page.api.get("/v1/products", id=",".join(ids), limit=len(ids)))["data"] if ids else []
    return {product["id"]: find_title(product) for product in found}


def _read_change(form: Any, field: str) -> tuple[BatchAction, Any]:
    """Return the action of a bulk correction and its value. Raises Unprocessable."""
    action = form["action"]
    if action in ("percent", "amount"):
        return BatchAction.ADJUST, read_price_change(
            action, form["change"], form["currency"].strip().lower(), form["rounding"]
        )
    if action == BatchAction.OVERRIDE:
        return BatchAction.OVERRIDE, read_text(field, form["value"], form["currency"])
    if action not in (BatchAction.LOCK, BatchAction.CLEAR, BatchAction.REMOVE):
        raise Unprocessable.for_field("action", "required", gettext("Select what to do with the field."))
    return BatchAction(action), None
