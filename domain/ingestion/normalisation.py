"""Normalisation: conversion of the table rows of one product to a ProductStatement (product, variants and offers)."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from domain.catalogue.categories import find_id_by_slug
from domain.catalogue.data import BundleComponent, Carton, OfferData, ProductData, VariantData
from domain.catalogue.data_limits import trim_product, trim_variant
from domain.catalogue.differences import PRICES, STOCK_CHECK_FIELDS
from domain.catalogue.model import Availability
from domain.catalogue.statements import CartonCells, OfferStatement, ProductStatement, VariantStatement
from domain.ingestion.columns.families import add_family_member, complete_family
from domain.ingestion.columns.plan import (
    ColumnOption,
    ReadPlan,
    find_column_of_first_omitted_entry,
    locate_first_omitted_entry,
    read_row,
)
from domain.ingestion.contradictions import describe_price_order, find_contradictions
from domain.ingestion.data import load_word_set
from domain.ingestion.drafts import UNSTATED_LOCATION, ProductDraft, RowDraft
from domain.ingestion.model import Row
from domain.ingestion.pieces import (
    add_labelled_values,
    assign_sizes_to_parts,
    build_item_title,
    merge_title_size,
    names_several_pieces,
    reconcile_piece_count,
)
from domain.ingestion.values.dimensions import parse_dimensions
from domain.ingestion.values.labels import RUG, LabelledLength, assign_dimensions
from domain.ingestion.values.media import build_media
from domain.ingestion.values.rugs import parse_rug_size
from domain.ingestion.values.text import clean_value, quote_text
from domain.ingestion.vocabulary.kinds import find_brick, find_kind_in_path
from domain.kernel.bounds import MAX_ENTRY_CHARS, MAX_IMPORTED_VARIANTS, MAX_OFFERS
from domain.kernel.problems import Problem, ProblemKind

_STOCK = frozenset(f"offer.{name}" for name in STOCK_CHECK_FIELDS)
_COLUMN_OPTION = 99
"""Number of the option of columns that describe one variant each; numbers in headers are smaller."""
_IDENTIFYING_FIELDS = ("sku", "gtin", "mpn", "title")


def normalise_rows(
    key: str, rows: Sequence[Row], plan: ReadPlan, sheet: str | None = None, *, is_family: bool = False
) -> tuple[ProductStatement, list[Problem]]:
    """Convert the rows of one product to a ProductStatement, and return it with the problems found.

    Rows with the same variant key form one variant. A later row adds values that earlier rows lack; if prices differ, the first is kept and
    a conflict is reported. Entries beyond the limits in domain/kernel/bounds.py are omitted, with one problem for each field. Several
    statements can share nested values, so treat these as read-only.

    Args:
        key: The key of the product.
        rows: The rows with this key.
        plan: The plan for reading the table.
        sheet: The name of the sheet, for problems.
        is_family: Whether the key was derived from similar titles and codes of several rows instead of a column.
    """
    product = ProductDraft(key, rows, sheet, is_family, plan.has_product_column or is_family)
    first_row: RowDraft | None = None
    first_cells: list[Any] = []
    blank_fields_by_row: list[frozenset[str]] = []
    states_status = False
    for (line, cells), option in (
        (given_row, option) for given_row in rows for option in plan.find_options(given_row[1])
    ):
        row = RowDraft(product, line)
        row.blank_fields, row.covers_locations, row.states_status = (
            plan.find_blank_fields(cells),
            plan.row_covers_locations(cells),
            plan.has_status_cell(cells),
        )
        states_status |= row.states_status
        blank_fields_by_row.append(row.blank_fields)
        if option is None:
            read_row(plan, cells, row)
        else:
            read_row(plan, cells, row, option.readers)
            product.option_names[_COLUMN_OPTION], row.option_values[_COLUMN_OPTION] = option.axis, option.value
        row.is_untracked = plan.is_untracked is not None and plan.is_untracked(cells)
        if row.media_urls:
            add_media(row)
        own = _find_variant_key(plan, cells, row, option)
        if is_family and plan.read_family and own is not None:
            add_family_member(row, own, plan.read_family(cells))
        if own is not None:
            _add_row_to_variant(plan, own, row, cells)
        elif first_row is None:
            first_row, first_cells = row, cells
    if not product.variants and first_row is not None:
        _add_row_to_variant(plan, key, first_row, first_cells)
    _complete_variants(product)
    data, discontinued = complete_product(product)
    if plan.read_title is not None and "title" not in data:
        product.add_problem("title", ProblemKind.MISSING, "The item has no title.", rows[0][0])
    for excess in trim_product(data):  # type: ignore[arg-type]
        product.truncation.add_omitted(excess.field, excess.count, *locate_first_omitted_entry(excess, rows, plan))
    product.problems += product.truncation.build_problems(sheet)
    statement = ProductStatement(
        key,
        data,
        list(product.variants.values()),
        discontinued if discontinued or states_status else None,
        blank_fields=frozenset.intersection(*blank_fields_by_row),
        has_product_key=product.is_grouped,
    )
    _report_contradictions(product, statement, plan)
    # A row with several options is read once for each of them.
    problems = list(dict.fromkeys(product.problems)) if plan.options else product.problems
    return statement, plan.select_reported(problems, rows)


def _report_contradictions(product: ProductDraft, statement: ProductStatement, plan: ReadPlan) -> None:
    """Report values of the variants that contradict each other, each at the first row of the variant."""
    for variant, found in find_contradictions(statement):
        column = plan.find_header_of_offer(found.field, found.location, variant.data.get("axes", {}))
        product.add_problem(found.field, found.problem, found.detail, product.line_by_variant[variant.key], column)


def _complete_variants(product: ProductDraft) -> None:
    """Complete the variants with values from the product's texts and option names, and report variants that differ only by code."""
    rename_option_axes(product)
    add_labelled_values(product)
    complete_family(product)
    alike = add_distinguishing_axes(product) if product.is_grouped else ()
    if alike:
        keys = ", ".join(variant.key for variant in alike[:3])
        detail = (
            f"{len(alike)} variants differ from another variant of the product only by their code ({quote_text(keys)})."
        )
        product.add_problem("axes", ProblemKind.MISSING, detail, product.rows[0][0])


def _join_option_values(values: Mapping[int, str]) -> str:
    """Return the option values of a row joined with ` / `, without Shopify's value `Default Title`."""
    return " / ".join(values[place] for place in sorted(values) if values[place] != "Default Title")


def _find_variant_key(plan: ReadPlan, cells: list[Any], row: RowDraft, option: ColumnOption | None) -> str | None:
    """Return the key of the variant in a row, or None if the row only adds data to the product, such as another image."""
    key = row.product.key
    if not plan.has_product_column:
        return plan.read_variant_key(cells) or key
    own = plan.read_variant_key(cells) if row.variant or row.option_values or row.offers else None
    if option is not None:
        return f"{own or key} / {_join_option_values({**row.option_values, _COLUMN_OPTION: option.label})}"
    options = _join_option_values(row.option_values)
    if own is not None and (row.variant or own != key):
        return _make_key_unique(own, options, row)
    if options:
        return f"{key} / {options}"
    if row.option_values or row.offers or any(name in row.variant for name in _IDENTIFYING_FIELDS):
        return key
    return None


def _make_key_unique(key: str, options: str, row: RowDraft) -> str:
    """Return a variant key for a row that no variant with other option values has.

    If the key is taken, the option values are appended and the duplicate is reported.

    Args:
        key: The key in the row.
        options: The option values of the row as one text.
        row: The draft of the row.
    """
    existing = row.product.variants.get(key)
    if existing is None or not options:
        return key
    axes = " / ".join(existing.data.get("axes", {}).values())
    if axes == options:
        return key
    detail = f"Two variants of one product share the code {key}; the second is kept as {key} / {options}."
    row.product.problems.append(Problem("sku", ProblemKind.DUPLICATE, detail, row.line, None, row.product.sheet))
    return f"{key} / {options}"


def _add_row_to_variant(plan: ReadPlan, key: str, row: RowDraft, cells: list[Any]) -> None:
    """Add the data and offers of a row to the variant with a key; create the variant if necessary."""
    product = row.product
    data = complete_variant(row)
    for excess in trim_variant(data):  # type: ignore[arg-type]
        product.truncation.add_omitted(
            excess.field, excess.count, row.line, find_column_of_first_omitted_entry(excess, row.line, cells, plan)
        )
    offers = build_offers(row, plan.default_location)
    blank = frozenset(path for path in row.blank_fields if path.startswith("offer."))
    if not offers and not row.covers_locations and (blank := blank - _STOCK):
        offers = [OfferStatement(plan.default_location, {})]
    for offer in offers:
        offer.blank_fields = blank
    variant = product.variants.get(key)
    if variant is not None and (
        differences := _find_differences(variant.data, data, names_only=not plan.has_item_codes)
    ):
        names = " and ".join(_NAMES_OF_DIFFERENCES.get(name, name) for name in differences)
        detail = f"Items with the key {quote_text(key)} differ in {names}; each of them is a variant."
        key = " / ".join((key, *differences.values()))
        variant = product.variants.get(key)
        product.is_grouped = True
        if variant is None:
            row.report_conflict(next(iter(differences)), detail)
    if variant is not None:
        merge_variant_data(variant.data, data, row)
        merge_offers(variant.offers, offers, row)
        variant.blank_fields &= row.blank_fields
        variant.covers_locations |= row.covers_locations
        variant.states_status |= row.states_status
    elif len(product.variants) < MAX_IMPORTED_VARIANTS:
        boxes = tuple(number for number, carton in sorted(row.cartons.items()) if carton)
        variant = product.variants[key] = VariantStatement(
            key,
            data,
            offers,
            blank_fields=row.blank_fields,
            covers_locations=row.covers_locations,
            states_status=row.states_status,
            carton_cells=CartonCells(plan.find_carton_properties(cells), boxes) if plan.carton_columns else None,
        )
        product.line_by_variant[key] = row.line
    else:
        product.truncation.add_omitted("variants", 1, row.line, None, key)
        return
    if len(variant.offers) > MAX_OFFERS:
        product.truncation.add_omitted("offers", len(variant.offers) - MAX_OFFERS, row.line, None)
        del variant.offers[MAX_OFFERS:]


# Data of products, variants and offers from their drafts; distinguishing axes; repeated rows.


_COLOUR_AXES = load_word_set("colours", "axes")
_FINISH_AXES = load_word_set("colours", "finish_axes")
_SIZE_AXES = ("size", "rug size", "dimensions", "grösse", "größe", "tamaño")
_LETTERED_SIZE = re.compile(r"(?i)\d\s?(?:mm|cm|in|\")\s?[lwdh]\s?[x×]\s?\d")
"""Pattern of a size with units and letters (`720mm L x 530mm W`); other option values are not parsed as sizes."""
_DIMENSIONS = ("length", "width", "depth", "height", "diameter")
_NAMES_OF_DIFFERENCES = {"dimensions": "size", "gtin": "GTIN"}
_CONFLICTING_FIELDS = (*PRICES, "quantity", "availability", "lead_time_days")
_DISTINGUISHING_AXES = (
    ("Color", "colour", _COLOUR_AXES),
    ("Finish", "finish", _FINISH_AXES),
    ("Material", "materials", ("material", "materials", "fabric")),
)
"""Axes to add if variants have the same axes but differ in a field: axis, field and other names of the axis."""


# Products.


def add_media(row: RowDraft) -> None:
    """Add the images of a row to its product; a URL that the product already has is skipped.

    The columns for the position and the alternative text apply only if the row has a single image.
    """
    media, single = row.product.media, len(row.media_urls) == 1
    for url in row.media_urls:
        if url in media:
            continue
        item: dict[str, Any] = {"url": url}
        alt = row.media_alts.get(url) if row.media_alts else row.media_alt if single else None
        if alt and len(alt) <= MAX_ENTRY_CHARS:
            item["alt"] = alt
        elif alt:
            row.product.truncation.add_omitted("media.alt", 1, row.line)
        if single and row.media_position:
            item["order"] = row.media_position
        media[url] = item


def complete_product(product: ProductDraft) -> tuple[ProductData, bool]:
    """Complete the data of a product, and return it with a boolean that states whether the product is discontinued.

    A category path in Google's taxonomy determines the category. The vendor's category path determines only the GPC brick, because
    category rules determine the category.
    """
    data = product.data
    path, further = product.find_category_paths()
    if path:
        data["category_path"] = list(path)
    product.tags.update({" > ".join(other): None for other in further})
    kind = find_kind_in_path(product.google_category)
    if kind and (category := find_id_by_slug(kind.slug)):
        data.setdefault("category", category)
    kind = find_kind_in_path(path)
    if kind and (brick := find_brick(kind, data.get("title", ""))):
        data.setdefault("gpc_brick", brick)
    if product.tags:
        data["tags"] = list(product.tags)
    if product.features or product.extra_measures:
        # Other measures of sizes follow the vendor's own features.
        data["features"] = list({**product.features, **product.extra_measures})
    if product.compliance:
        data["compliance"] = product.compliance  # type: ignore[typeddict-item]
    if product.media:
        data["media"] = build_media(list(product.media.values()), product.main_image_url)
    variants = product.variants.values()
    are_all_discontinued = bool(variants) and all(variant.data.get("discontinued") is True for variant in variants)
    return data, are_all_discontinued or product.discontinued_values == {True}


# Variants.


def _set_fields_from_axes(row: RowDraft, axes: Mapping[str, str], data: VariantData) -> None:
    """Set the colour, finish and size of a variant from its axes if the row has no other values for these fields."""
    for name, value in axes.items():
        low = name.lower()
        if low in _COLOUR_AXES:
            data.setdefault("colour", value)
        elif low in _FINISH_AXES:
            data.setdefault("finish", value)
        elif low in _SIZE_AXES and row.parsed_size is None and not row.rug:
            if row.determine_kind() == RUG:
                _set_rug_size(row, value)
            elif _LETTERED_SIZE.search(value):
                row.parsed_size = parse_dimensions(value.rpartition("|")[2], None, row.determine_kind()).value


def _set_rug_size(row: RowDraft, text: str) -> None:
    """Set the shape, size and dimensions of a rug from a text with its size, unless the text has faults."""
    parsed = parse_rug_size(text)
    size = parsed.value
    if size is None or parsed.faults:
        return
    row.rug = {"shape": size.shape, "size_text": clean_value(text) or text}
    if size.nominal:
        row.rug["nominal"] = size.nominal
    for side, value in size.dimensions.items():
        row.dimensions.setdefault(side, value)  # type: ignore[misc]


def _merge_dimensions(row: RowDraft) -> Mapping[str, Any]:
    """Return the dimensions in the row: from columns for single dimensions, or else from the text with all dimensions.

    A `length` is converted to the width, depth or height.
    """
    lengths: dict[str, Any] = dict(row.dimensions)
    if "length" in lengths:
        items: list[LabelledLength] = [(lengths[side], side) for side in _DIMENSIONS if side in lengths]
        sides = assign_dimensions(items, "length", row.determine_kind())
        row.report_faults("dimensions", None, sides.faults)
        lengths = {**{side: value for side, value in lengths.items() if side not in _DIMENSIONS}, **(sides.value or {})}
    return {**row.parsed_size.dimensions, **lengths} if row.parsed_size else lengths


def _merge_components(row: RowDraft) -> list[BundleComponent]:
    """Return the components of a set in a row, from a column of codes and from the pieces that a size text names.

    Components with codes get the sizes of the pieces that match them. A piece that matches no component, or several,
    becomes a further component. This does not apply if the title names a single item and no piece matches.
    """
    title = build_item_title(row.product, row.variant)
    pieces, detail = reconcile_piece_count(row.parsed_size.components if row.parsed_size else (), title)
    if not row.components or not pieces:
        if detail is not None:
            row.report_conflict("components", detail)
        return row.components or pieces
    sized, unassigned = assign_sizes_to_parts(row.components, pieces)
    # In a single piece, a label of a size is a dimension or a state (`reclined`), not a part.
    return [*sized, *unassigned] if names_several_pieces(title) or len(unassigned) < len(pieces) else sized


def complete_variant(row: RowDraft) -> VariantData:
    """Complete the data of the variant in a row, and return it.

    A carton without a count gets the count 1, unless the row states another number of cartons.
    """
    data = row.variant
    axes = dict(row.axes)
    for index in sorted(row.option_values):
        if row.option_values[index] != "Default Title":
            axes[row.product.option_names.get(index) or f"Option {index + 1}"] = row.option_values[index]
    if axes:
        data["axes"] = axes
        _set_fields_from_axes(row, axes, data)
    if row.materials:
        data["materials"] = list(row.materials)
    if dimensions := merge_title_size(row, _merge_dimensions(row) if row.dimensions or row.parsed_size else {}):
        data["dimensions"] = dimensions  # type: ignore[typeddict-item]
    if (row.components or (row.parsed_size and row.parsed_size.components)) and (components := _merge_components(row)):
        data["components"] = components
    if boxes := [carton for _, carton in sorted(row.cartons.items()) if carton]:
        default_count: Carton = {"count": 1} if row.carton_count in (None, len(boxes)) else {}
        data["cartons"] = [{**default_count, **carton} for carton in boxes]
    if row.rug:
        data["rug"] = row.rug
    if row.variant_media:
        alts = {url: {"alt": alt} for url, alt in row.media_alts.items() if len(alt) <= MAX_ENTRY_CHARS}
        data["media"] = build_media(
            [{"url": url, **alts.get(url, {})} for url in dict.fromkeys(row.variant_media)], None
        )
    return data


def rename_option_axes(product: ProductDraft) -> None:
    """Rename axes such as `Option 1` to the option names of the product, which a later row can contain."""
    names = {f"Option {place + 1}": name for place, name in product.option_names.items()}
    for variant in product.variants.values() if names else ():
        axes = variant.data.get("axes")
        if axes and names.keys() & axes.keys():
            variant.data["axes"] = {names.get(axis, axis): value for axis, value in axes.items()}


def add_distinguishing_axes(product: ProductDraft) -> Sequence[VariantStatement]:
    """Add axes for the colour, finish or material in which variants differ; return variants that still equal an earlier one."""
    variants = list(product.variants.values())
    if len(variants) < 2 or _have_distinct_axes(variants):
        return ()
    for axis, name, other_names in _DISTINGUISHING_AXES:
        stated_values = [variant.data.get(name) for variant in variants]
        values = [", ".join(value) if isinstance(value, list) else value for value in stated_values]
        if None in values or len(set(values)) < 2:
            continue
        if not {key.lower() for variant in variants for key in variant.data.get("axes", ())}.isdisjoint(other_names):
            continue
        for variant, value in zip(variants, values, strict=True):
            variant.data["axes"] = {**variant.data.get("axes", {}), axis: str(value)}
        if _have_distinct_axes(variants):
            return ()
        for variant in variants if name == "materials" else ():
            # Materials become an axis only if they distinguish all variants.
            del variant.data["axes"][axis]
            if not variant.data["axes"]:
                del variant.data["axes"]
    seen: dict[Any, VariantStatement] = {}
    return [
        variant
        for variant in variants
        if seen.setdefault(_collect_distinguishing_values(variant.data), variant) is not variant
    ]


def _collect_distinguishing_values(data: VariantData) -> tuple[Any, ...]:
    """Return the values by which a buyer can distinguish variants: axes, title, dimensions and components."""
    parts = tuple((part.get("sku"), part.get("name"), part.get("quantity")) for part in data.get("components", ()))
    return (
        frozenset(data.get("axes", {}).items()),
        data.get("title"),
        tuple(sorted(map_lengths_by_dimension(data).items())),
        parts,
    )


def _have_distinct_axes(variants: Sequence[VariantStatement]) -> bool:
    """Return whether no two variants have the same axes."""
    return len({frozenset(variant.data.get("axes", {}).items()) for variant in variants}) == len(variants)


def map_lengths_by_dimension(data: VariantData) -> dict[str, int]:
    """Return the lengths of a variant by dimension, in hundredths of an inch."""
    sides: Mapping[str, Any] = dict(data.get("dimensions", {}))
    return {side: length["hundredths_in"] for side, length in sides.items()}


def has_other_size(variant_data: VariantData, row_data: VariantData) -> bool:
    """Return whether the data of two rows have different lengths for the same dimension."""
    sides = map_lengths_by_dimension(variant_data)
    return any(sides.get(side, figure) != figure for side, figure in map_lengths_by_dimension(row_data).items())


def _find_differences(variant_data: VariantData, row_data: VariantData, *, names_only: bool) -> dict[str, str]:
    """Return the colour, finish and size of a row by field, as far as the first row with the same key has another one.

    The result is empty if the rows describe the same item: if the key is a code and the rows have no different GTINs.

    Args:
        variant_data: The data of the first row.
        row_data: The data of the other row.
        names_only: Whether the key is only the name of a model.
    """
    gtin = row_data.get("gtin")
    has_other_gtin = gtin is not None and variant_data.get("gtin") not in (None, gtin)
    if not names_only and not has_other_gtin:
        return {}
    differences = {
        name: value
        for name, value in (("colour", row_data.get("colour")), ("finish", row_data.get("finish")))
        if value is not None and variant_data.get(name) not in (None, value)
    }
    if has_other_size(variant_data, row_data):
        differences["dimensions"] = format_dimensions(row_data)
    return differences or ({"gtin": gtin} if gtin is not None and has_other_gtin else {})


def format_dimensions(data: VariantData) -> str:
    """Return the lengths of a variant as one text in the vendor's units (`30 x 40 in`), for use in a key."""
    measures = [length["given"] for _, length in sorted(dict[str, Any](data.get("dimensions", {})).items())]
    units = dict.fromkeys(each["unit"] for each in measures)
    return f"{' x '.join(str(each['value']) for each in measures)} {'/'.join(units)}"


def merge_variant_data(variant_data: VariantData, row_data: VariantData, row: RowDraft) -> None:
    """Add values from a further row of a variant to fields that the variant lacks; report each field in which the row differs.

    Args:
        variant_data: The data of the variant, which is completed.
        row_data: The data in the further row.
        row: The draft of the further row, for problems.
    """
    kept: dict[str, Any] = variant_data  # type: ignore[assignment]
    for name, value in row_data.items():
        # Media of further rows are added, so they do not differ.
        if kept.setdefault(name, value) != value and name != "media":
            detail = f"Rows of one item differ in {name.replace('_', ' ')}; the first value is kept."
            row.report_conflict(name, detail)


# Offers.


def _complete_offer(row: RowDraft, offer: OfferData) -> None:
    """Complete the data of an offer, in place.

    A quantity of 0 is removed if the row states that stock is not tracked. A sale price becomes the price, and a higher regular price the
    compare-at price; a sale price above the regular price is removed and reported, as is a compare-at price that is not above the price. If there is no availability, the quantity
    determines it.
    """
    facts: Any = offer
    if row.is_untracked and facts.get("quantity") == 0 and "availability" not in facts:
        del facts["quantity"]
    sale = facts.pop("sale_price", None)
    if sale is not None:
        usual = facts.setdefault("price", sale)
        if usual > sale:
            facts.setdefault("compare_at", usual)
            facts["price"] = sale
        elif usual < sale:
            detail = describe_price_order({**facts, "sale_price": sale}, "sale_price", "price")
            row.report_conflict("sale_price", f"{detail} The sale price was ignored.")
    incoming = [arrival for arrival in facts.pop("incoming", ()) if arrival]
    if incoming:
        facts["incoming"] = incoming
    if "quantity" in facts and "availability" not in facts:
        facts["availability"] = Availability.from_quantity(facts["quantity"])
    price, strike = facts.get("price"), facts.get("compare_at")
    if price is not None and strike is not None and strike <= price:
        del facts["compare_at"]
        detail = (
            f"The compare-at price ({strike}) is not above the price ({price}; both in minor units). "
            "The compare-at price was ignored."
        )
        row.report_conflict("compare_at", detail)


def build_offers(row: RowDraft, default_location: str) -> list[OfferStatement]:
    """Return the offers of a row.

    If columns name several locations, values without a location (such as the price) apply to all of them.

    Args:
        row: The draft of the row.
        default_location: The location of offers for which neither the column nor the row names a location.
    """
    offers: dict[str, Any] = dict(row.offers)
    if row.stock_in_value is not None:
        offers = offers or {UNSTATED_LOCATION: {}}
        for offer in offers.values():
            if row.stock_in_value.quantity is not None:
                offer.setdefault("quantity", row.stock_in_value.quantity)
            offer.setdefault("availability", row.stock_in_value.availability)
    common = offers.pop(UNSTATED_LOCATION) if len(offers) > 1 and UNSTATED_LOCATION in offers else {}
    for offer in offers.values():
        for name, value in common.items():
            offer.setdefault(name, value)
        _complete_offer(row, offer)
        if offer.get("availability") == "discontinued":
            row.variant.setdefault("discontinued", True)
    return [OfferStatement(at or row.location or default_location, offer) for at, offer in offers.items() if offer]


def merge_offers(variant_offers: list[OfferStatement], row_offers: list[OfferStatement], row: RowDraft) -> None:
    """Add the offers of a further row to the offers of a variant; report different values at the same location.

    Args:
        variant_offers: The offers of the variant, which are extended.
        row_offers: The offers of the further row.
        row: The draft of the further row, for problems.
    """
    for offer in row_offers:
        known_offer = next((before for before in variant_offers if before.location == offer.location), None)
        if known_offer is None:
            variant_offers.append(offer)
            continue
        known_offer.blank_fields &= offer.blank_fields
        known_data: Any = known_offer.data
        row_data: Any = offer.data
        currencies = {given["currency"] for given in (known_data, row_data) if "currency" in given}
        for name, value in row_data.items():
            if name == "compare_at" and "price" in known_data and known_data["price"] != row_data.get("price"):
                continue  # a compare-at price belongs to the price of its own row
            if (
                name in _CONFLICTING_FIELDS
                and name in known_data
                and (known_data[name] != value or len(currencies) > 1)
            ):
                if name != "availability":
                    figures = f"{quote_text(str(known_data[name]))} and {quote_text(str(value))}"
                    detail = f"Rows of one item state {figures} as {name}; the first is kept."
                    row.report_conflict(name, detail)
            elif len(currencies) < 2 or name not in PRICES:
                known_data.setdefault(name, value)
