"""From the rows of one product to its statement: the heart of a run."""

from typing import Any, Final

from domain.catalogue.differences import CHECKED
from domain.catalogue.statements import CartonCells, OfferStatement, ProductStatement, VariantStatement
from domain.catalogue.trimming import trim_product, trim_variant
from domain.ingestion.columns.families import join, settle_family
from domain.ingestion.columns.plan import ReadPlan, column_of, place_of, read_row
from domain.ingestion.drafts.data import (
    add_media,
    fill_in,
    finish_product,
    finish_variant,
    merge_offers,
    name_options,
    offers_of,
    other_size,
    size_text,
    tell_apart,
)
from domain.ingestion.drafts.draft import ProductDraft, RowDraft
from domain.ingestion.drafts.pieces import describe
from domain.ingestion.model import Group
from domain.ingestion.values.parsed import quoted
from domain.kernel.bounds import OFFERS, VARIANTS
from domain.kernel.problems import Problem, ProblemKind

_STOCK: Final = frozenset(f"offer.{name}" for name in CHECKED)
_OWN: Final = ("sku", "gtin", "mpn", "title")


def normalise(group: Group, plan: ReadPlan) -> tuple[ProductStatement, list[Problem]]:
    """The statement that a group of rows makes about one product, and what could not be read.

    Rows with the same variant key are one variant: later rows fill what is absent, and a price that differs is reported as
    conflict while the first is kept. What is too much for one product (domain/kernel/bounds.py) is left out and told once a
    field. Nested values are shared between statements: treat them as read-only.
    """
    product = ProductDraft(group.sheet, grouped=plan.grouped or group.family)
    first: RowDraft | None = None
    kept: list[Any] = []
    blank: list[frozenset[str]] = []
    states_status = False
    for line, cells in group.rows:
        row = RowDraft(product, line)
        row.blank, row.covers, row.states_status = plan.blank_in(cells), plan.covers(cells), plan.states_status(cells)
        states_status |= row.states_status
        blank.append(row.blank)
        read_row(plan, cells, row)
        row.untracked = plan.is_untracked is not None and plan.is_untracked(cells)
        if row.media_urls:
            add_media(row)
        key = _variant_key(group, plan, cells, row)
        if group.family and plan.family and key is not None:
            join(row, key, plan.family(cells))
        if key is not None:
            _merge(plan, key, row, cells)
        elif first is None:
            first, kept = row, cells
    if not product.variants and first is not None:
        _merge(plan, group.key, first, kept)
    _complete_variants(group, plan, product)
    data, discontinued = finish_product(product)
    if plan.title is not None and "title" not in data:
        product.tell("title", ProblemKind.MISSING, "The item has no title.", group.rows[0][0])
    for excess in trim_product(data):  # type: ignore[arg-type]
        product.left_out.add(excess.field, excess.count, *place_of(excess, group, plan))
    product.problems += product.left_out.problems(group.sheet)
    statement = ProductStatement(
        group.key,
        data,
        list(product.variants.values()),
        discontinued if discontinued or states_status else None,
        blank=frozenset.intersection(*blank),
        names_product=plan.grouped or group.family,
    )
    return statement, product.problems


def _complete_variants(group: Group, plan: ReadPlan, product: ProductDraft) -> None:
    """Complete variants from what the whole product says, and see that they can be told from each other."""
    name_options(product)
    describe(product)
    settle_family(product)
    alike = tell_apart(product) if product.grouped else ()
    if alike:
        keys = ", ".join(variant.key for variant in alike[:3])
        detail = f"Nothing but the code tells {len(alike)} variants from others of the product ({quoted(keys)})."
        product.tell("axes", ProblemKind.MISSING, detail, group.rows[0][0])


def _options_of(row: RowDraft) -> str:
    values = row.option_values
    return " / ".join(values[place] for place in sorted(values) if values[place] != "Default Title")


def _variant_key(group: Group, plan: ReadPlan, cells: list[Any], row: RowDraft) -> str | None:
    """The key of the variant that a row is about; None for a row that only adds to its product (a further picture)."""
    if not plan.grouped:
        return plan.variant_key(cells) or group.key
    own = plan.variant_key(cells) if row.variant or row.option_values or row.offers else None
    options = _options_of(row)
    if own is not None and (row.variant or own != group.key):
        return _unclaimed(own, options, row)
    if options:
        return f"{group.key} / {options}"
    if row.option_values or row.offers or any(name in row.variant for name in _OWN):
        return group.key
    return None


def _unclaimed(own: str, options: str, row: RowDraft) -> str:
    """A row's own key; with its options added when another variant of other options already has it."""
    known = row.product.variants.get(own)
    if known is None or not options:
        return own
    axes = " / ".join(known.data.get("axes", {}).values())
    if axes == options:
        return own
    detail = f"Two variants of one product share the code {own}; the second is kept as {own} / {options}."
    row.product.problems.append(Problem("sku", ProblemKind.DUPLICATE, detail, row.line, None, row.product.sheet))
    return f"{own} / {options}"


def _carton_cells(row: RowDraft, plan: ReadPlan, cells: list[Any]) -> CartonCells | None:
    if not plan.cartons:
        return None
    stated = tuple(number for number, carton in sorted(row.cartons.items()) if carton)
    return CartonCells(plan.carton_parts(cells), stated)


def _merge(plan: ReadPlan, key: str, row: RowDraft, cells: list[Any]) -> None:
    """Add a row's facts to its variant."""
    product = row.product
    data = finish_variant(row)
    for excess in trim_variant(data):  # type: ignore[arg-type]
        product.left_out.add(excess.field, excess.count, row.line, column_of(excess, row.line, cells, plan))
    offers = offers_of(row, plan.location)
    blank = frozenset(path for path in row.blank if path.startswith("offer."))
    if not offers and not row.covers and (blank := blank - _STOCK):
        offers = [OfferStatement(plan.location, {})]
    for offer in offers:
        offer.blank = blank
    known = product.variants.get(key)
    if known is not None and not plan.keyed and other_size(known.data, data):
        detail = f"Items of one name, {quoted(key)}, differ in size; each is kept by itself."
        key = f"{key} / {size_text(data)}"
        known = product.variants.get(key)
        if known is None:
            product.tell("dimensions", ProblemKind.CONFLICT, detail, row.line)
    if known is not None:
        fill_in(known.data, data, row)
        merge_offers(known.offers, offers, row)
        known.blank &= row.blank
        known.covers_locations |= row.covers
        known.states_status |= row.states_status
    elif len(product.variants) < VARIANTS:
        known = product.variants[key] = VariantStatement(
            key,
            data,
            offers,
            blank=row.blank,
            covers_locations=row.covers,
            states_status=row.states_status,
            cartons=_carton_cells(row, plan, cells),
        )
    else:
        product.left_out.add("variants", 1, row.line, None, key)
        return
    if len(known.offers) > OFFERS:
        product.left_out.add("offers", len(known.offers) - OFFERS, row.line, None)
        del known.offers[OFFERS:]
