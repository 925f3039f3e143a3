"""Normalisation of the rows of one product to a statement."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from domain.catalogue.categories import by_slug
from domain.catalogue.data import Carton, Component, OfferData, ProductData, VariantData
from domain.catalogue.differences import CHECKED, PRICES
from domain.catalogue.statements import CartonCells, OfferStatement, ProductStatement, VariantStatement
from domain.catalogue.trimming import trim_product, trim_variant
from domain.ingestion.columns.families import join, settle_family
from domain.ingestion.columns.plan import ReadPlan, column_of, place_of, read_row
from domain.ingestion.data import words
from domain.ingestion.drafts import NO_PLACE, ProductDraft, RowDraft
from domain.ingestion.model import Row
from domain.ingestion.pieces import counted, describe, of_several, title_of, with_sizes, with_title
from domain.ingestion.values.dimensions import parse_dimensions
from domain.ingestion.values.labels import RUG, Sided, place
from domain.ingestion.values.media import media_list
from domain.ingestion.values.rugs import parse_rug_size
from domain.ingestion.values.stock import availability_of
from domain.ingestion.values.text import quoted, stated
from domain.ingestion.vocabulary.kinds import brick_of, kind_in_path
from domain.kernel.bounds import ITEM_CHARS, OFFERS, VARIANTS
from domain.kernel.problems import Problem, ProblemKind

_STOCK = frozenset(f"offer.{name}" for name in CHECKED)
_OWN = ("sku", "gtin", "mpn", "title")


def normalise(
    key: str, rows: Sequence[Row], plan: ReadPlan, sheet: str | None = None, *, is_family: bool = False
) -> tuple[ProductStatement, list[Problem]]:
    """Return the statement that the rows of one key make about their product, and the problems found.

    Rows with the same variant key form one variant: later rows fill absent values, and different prices are a conflict in
    which the first is kept. Values beyond the limits of a product (domain/kernel/bounds.py) are left out, with one problem
    for each field. Nested values are shared between statements: treat them as read-only.
    """
    product = ProductDraft(key, rows, sheet, is_family, plan.grouped or is_family)
    first: RowDraft | None = None
    kept: list[Any] = []
    blank: list[frozenset[str]] = []
    states_status = False
    for line, cells in rows:
        row = RowDraft(product, line)
        row.blank, row.covers, row.states_status = plan.blank_in(cells), plan.covers(cells), plan.states_status(cells)
        states_status |= row.states_status
        blank.append(row.blank)
        read_row(plan, cells, row)
        row.untracked = plan.is_untracked is not None and plan.is_untracked(cells)
        if row.media_urls:
            add_media(row)
        own = _variant_key(plan, cells, row)
        if is_family and plan.family and own is not None:
            join(row, own, plan.family(cells))
        if own is not None:
            _merge(plan, own, row, cells)
        elif first is None:
            first, kept = row, cells
    if not product.variants and first is not None:
        _merge(plan, key, first, kept)
    _complete_variants(product)
    data, discontinued = finish_product(product)
    if plan.title is not None and "title" not in data:
        product.add_problem("title", ProblemKind.MISSING, "The item has no title.", rows[0][0])
    for excess in trim_product(data):  # type: ignore[arg-type]
        product.left_out.add(excess.field, excess.count, *place_of(excess, rows, plan))
    product.problems += product.left_out.problems(sheet)
    statement = ProductStatement(
        key,
        data,
        list(product.variants.values()),
        discontinued if discontinued or states_status else None,
        blank=frozenset.intersection(*blank),
        names_product=product.grouped,
    )
    return statement, product.problems


def _complete_variants(product: ProductDraft) -> None:
    """Complete variants with facts of the whole product, and report variants that nothing distinguishes."""
    name_options(product)
    describe(product)
    settle_family(product)
    alike = tell_apart(product) if product.grouped else ()
    if alike:
        keys = ", ".join(variant.key for variant in alike[:3])
        detail = f"{len(alike)} variants differ from others of the product only by their code ({quoted(keys)})."
        product.add_problem("axes", ProblemKind.MISSING, detail, product.rows[0][0])


def _options_of(row: RowDraft) -> str:
    values = row.option_values
    return " / ".join(values[place] for place in sorted(values) if values[place] != "Default Title")


def _variant_key(plan: ReadPlan, cells: list[Any], row: RowDraft) -> str | None:
    """Return the key of a row's variant; None if the row only adds to its product, such as a further picture."""
    key = row.product.key
    if not plan.grouped:
        return plan.variant_key(cells) or key
    own = plan.variant_key(cells) if row.variant or row.option_values or row.offers else None
    options = _options_of(row)
    if own is not None and (row.variant or own != key):
        return _unique_key(own, options, row)
    if options:
        return f"{key} / {options}"
    if row.option_values or row.offers or any(name in row.variant for name in _OWN):
        return key
    return None


def _unique_key(own: str, options: str, row: RowDraft) -> str:
    """Return a row's own key, with its options appended if a variant with other options has the key."""
    known = row.product.variants.get(own)
    if known is None or not options:
        return own
    axes = " / ".join(known.data.get("axes", {}).values())
    if axes == options:
        return own
    detail = f"Two variants of one product share the code {own}; the second is kept as {own} / {options}."
    row.product.problems.append(Problem("sku", ProblemKind.DUPLICATE, detail, row.line, None, row.product.sheet))
    return f"{own} / {options}"


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
        detail = f"Items with the name {quoted(key)} differ in size; each is kept as a variant."
        key = f"{key} / {size_text(data)}"
        known = product.variants.get(key)
        if known is None:
            row.conflict("dimensions", detail)
    if known is not None:
        fill_in(known.data, data, row)
        merge_offers(known.offers, offers, row)
        known.blank &= row.blank
        known.covers_locations |= row.covers
        known.states_status |= row.states_status
    elif len(product.variants) < VARIANTS:
        boxes = tuple(number for number, carton in sorted(row.cartons.items()) if carton)
        known = product.variants[key] = VariantStatement(
            key,
            data,
            offers,
            blank=row.blank,
            covers_locations=row.covers,
            states_status=row.states_status,
            cartons=CartonCells(plan.carton_parts(cells), boxes) if plan.cartons else None,
        )
    else:
        product.left_out.add("variants", 1, row.line, None, key)
        return
    if len(known.offers) > OFFERS:
        product.left_out.add("offers", len(known.offers) - OFFERS, row.line, None)
        del known.offers[OFFERS:]


# Data of products, variants and offers from their drafts; distinguishing axes; repeated rows.


_COLOUR_AXES = words("colours", "axes")
_FINISH_AXES = ("finish", "wood finish")
_SIZE_AXES = ("size", "rug size", "dimensions", "grösse", "größe", "tamaño")
_LETTERED = re.compile(r"(?i)\d\s?(?:mm|cm|in|\")\s?[lwdh]\s?[x×]\s?\d")
"""Size in an option, read only if letters name the sides (`720mm L x 530mm W x 510mm H`)."""
_BOX = ("length", "width", "depth", "height", "diameter")
_KEPT = (*PRICES, "quantity", "availability", "lead_time_days")
_DISTINGUISHING = (
    ("Color", "colour", _COLOUR_AXES),
    ("Finish", "finish", _FINISH_AXES),
    ("Material", "materials", ("material", "materials", "fabric")),
)
"""Axes that are added if variants differ in a field but in no axis: name, field and equivalent names."""


# Products.


def add_media(row: RowDraft) -> None:
    """Add a row's pictures to its product, each address once; position and text apply only to a single picture."""
    media, single = row.product.media, len(row.media_urls) == 1
    for url in row.media_urls:
        if url in media:
            continue
        item: dict[str, Any] = {"url": url}
        alt = row.media_alts.get(url) if row.media_alts else row.media_alt if single else None
        if alt and len(alt) <= ITEM_CHARS:
            item["alt"] = alt
        elif alt:
            row.product.left_out.add("media.alt", 1, row.line)
        if single and row.media_position:
            item["order"] = row.media_position
        media[url] = item


def finish_product(product: ProductDraft) -> tuple[ProductData, bool]:
    """Return a product's data, and whether its rows state that it is discontinued.

    A path of Google's taxonomy determines the category; the vendor's own path determines only the GPC brick, since its
    category is set by the source's category rules.
    """
    data = product.data
    path, further = product.categories()
    if path:
        data["category_path"] = list(path)
    product.tags.update({" > ".join(other): None for other in further})
    kind = kind_in_path(product.google_category)
    if kind and (category := by_slug(kind.slug)):
        data.setdefault("category", category)
    kind = kind_in_path(path)
    if kind and (brick := brick_of(kind, data.get("title", ""))):
        data.setdefault("gpc_brick", brick)
    if product.tags:
        data["tags"] = list(product.tags)
    if product.features or product.extras:
        # Other measures of sizes follow the vendor's own features.
        data["features"] = list({**product.features, **product.extras})
    if product.compliance:
        data["compliance"] = product.compliance  # type: ignore[typeddict-item]
    if product.media:
        data["media"] = media_list(list(product.media.values()), product.hero)
    variants = product.variants.values()
    gone = bool(variants) and all(variant.data.get("discontinued") is True for variant in variants)
    return data, gone or product.discontinued == {True}


# Variants.


def _from_axes(row: RowDraft, axes: Mapping[str, str], data: VariantData) -> None:
    """Set colour, finish and size of a variant from its axes, if they are not stated otherwise."""
    for name, value in axes.items():
        low = name.lower()
        if low in _COLOUR_AXES:
            data.setdefault("colour", value)
        elif low in _FINISH_AXES:
            data.setdefault("finish", value)
        elif low in _SIZE_AXES and row.spread is None and not row.rug:
            if row.kind() == RUG:
                _rug_from(row, value)
            elif _LETTERED.search(value):
                row.spread = parse_dimensions(value.rpartition("|")[2], None, row.kind()).value


def _rug_from(row: RowDraft, text: str) -> None:
    parsed = parse_rug_size(text)
    size = parsed.value
    if size is None or parsed.faults:
        return
    row.rug = {"shape": size.shape, "size_text": stated(text) or text}
    if size.nominal:
        row.rug["nominal"] = size.nominal
    for side, value in size.dimensions.items():
        row.dimensions.setdefault(side, value)  # type: ignore[misc]


def _dimensions(row: RowDraft) -> Mapping[str, Any]:
    """Return the sides of the columns and those of the size text; `length` is assigned to a side."""
    found: dict[str, Any] = dict(row.dimensions)
    if "length" in found:
        items: list[Sided] = [(found[side], side) for side in _BOX if side in found]
        sides = place(items, "length", row.kind())
        row.report("dimensions", None, sides.faults)
        found = {**{side: value for side, value in found.items() if side not in _BOX}, **(sides.value or {})}
    return {**row.spread.dimensions, **found} if row.spread else found


def _components(row: RowDraft) -> list[Component]:
    """Return the parts by code, with the sizes of the pieces that they are.

    A piece that is not exactly one part is listed in addition, without a quantity.
    """
    title = title_of(row.product, row.variant)
    pieces, detail = counted(row.spread.components if row.spread else (), title)
    if not row.components or not pieces:
        if detail is not None:
            row.conflict("components", detail)
        return row.components or pieces
    sized, unassigned = with_sizes(row.components, pieces)
    # In a single piece, a label of a size is a side or a pose, not a part.
    return [*sized, *unassigned] if of_several(title) or len(unassigned) < len(pieces) else sized


def finish_variant(row: RowDraft) -> VariantData:
    """Return a row's variant data. A carton gets the count 1 unless the row states another number of cartons."""
    data = row.variant
    axes = dict(row.axes)
    for at in sorted(row.option_values):
        if row.option_values[at] != "Default Title":
            axes[row.product.option_names.get(at) or f"Option {at + 1}"] = row.option_values[at]
    if axes:
        data["axes"] = axes
        _from_axes(row, axes, data)
    if row.materials:
        data["materials"] = list(row.materials)
    if dimensions := with_title(row, _dimensions(row) if row.dimensions or row.spread else {}):
        data["dimensions"] = dimensions  # type: ignore[typeddict-item]
    if (row.components or (row.spread and row.spread.components)) and (components := _components(row)):
        data["components"] = components
    if boxes := [carton for _, carton in sorted(row.cartons.items()) if carton]:
        once: Carton = {"count": 1} if row.carton_count in (None, len(boxes)) else {}
        data["cartons"] = [{**once, **carton} for carton in boxes]
    if row.rug:
        data["rug"] = row.rug
    if row.variant_media:
        alts = {url: {"alt": alt} for url, alt in row.media_alts.items() if len(alt) <= ITEM_CHARS}
        data["media"] = media_list(
            [{"url": url, **alts.get(url, {})} for url in dict.fromkeys(row.variant_media)], None
        )
    return data


def name_options(product: ProductDraft) -> None:
    """Rename axes to the names of their options, which can occur in rows below their values."""
    names = {f"Option {place + 1}": name for place, name in product.option_names.items()}
    for variant in product.variants.values() if names else ():
        axes = variant.data.get("axes")
        if axes and names.keys() & axes.keys():
            variant.data["axes"] = {names.get(axis, axis): value for axis, value in axes.items()}


def tell_apart(product: ProductDraft) -> Sequence[VariantStatement]:
    """Add axes in which the variants differ, in place; return the variants that nothing distinguishes from another."""
    variants = list(product.variants.values())
    if len(variants) < 2 or _distinct(variants):
        return ()
    for axis, name, same in _DISTINGUISHING:
        stated_values = [variant.data.get(name) for variant in variants]
        values = [", ".join(value) if isinstance(value, list) else value for value in stated_values]
        if None in values or len(set(values)) < 2:
            continue
        if not {key.lower() for variant in variants for key in variant.data.get("axes", ())}.isdisjoint(same):
            continue
        for variant, value in zip(variants, values, strict=True):
            variant.data["axes"] = {**variant.data.get("axes", {}), axis: str(value)}
        if _distinct(variants):
            return ()
        for variant in variants if name == "materials" else ():
            # Materials become an axis only if they distinguish all variants.
            del variant.data["axes"][axis]
            if not variant.data["axes"]:
                del variant.data["axes"]
    seen: dict[Any, VariantStatement] = {}
    return [variant for variant in variants if seen.setdefault(_identity(variant.data), variant) is not variant]


def _identity(data: VariantData) -> tuple[Any, ...]:
    """Return the facts by which a buyer can distinguish a variant: axes, title, size and parts."""
    parts = tuple((part.get("sku"), part.get("name"), part.get("quantity")) for part in data.get("components", ()))
    return frozenset(data.get("axes", {}).items()), data.get("title"), tuple(sorted(sides_of(data).items())), parts


def _distinct(variants: Sequence[VariantStatement]) -> bool:
    return len({frozenset(variant.data.get("axes", {}).items()) for variant in variants}) == len(variants)


def sides_of(data: VariantData) -> dict[str, int]:
    """Return the sides of a variant in hundredths of an inch."""
    sides: Mapping[str, Any] = dict(data.get("dimensions", {}))
    return {side: length["hundredths_in"] for side, length in sides.items()}


def other_size(known: VariantData, data: VariantData) -> bool:
    """Return whether two rows state different values for a side."""
    sides = sides_of(known)
    return any(sides.get(side, figure) != figure for side, figure in sides_of(data).items())


def size_text(data: VariantData) -> str:
    """Return a variant's sides as given, for a key: `30 x 40 in`."""
    given = [length["given"] for _, length in sorted(dict[str, Any](data.get("dimensions", {})).items())]
    units = dict.fromkeys(each["unit"] for each in given)
    return f"{' x '.join(str(each['value']) for each in given)} {'/'.join(units)}"


def fill_in(known: VariantData, data: VariantData, row: RowDraft) -> None:
    """Add the absent facts from another row of a variant; report each field in which they differ."""
    kept: dict[str, Any] = known  # type: ignore[assignment]
    for name, value in data.items():
        # Media of further rows are added, so they do not differ.
        if kept.setdefault(name, value) != value and name != "media":
            detail = f"Rows of one item differ in {name.replace('_', ' ')}; the first value is kept."
            row.conflict(name, detail)


# Offers.


def _settle(row: RowDraft, offer: OfferData) -> None:
    """Bring an offer's facts to their final form, in place.

    A quantity of 0 that is not tracked is removed. A sale price becomes the price, and a higher price the compare-at price;
    a compare-at price that is not above the price is removed and reported. A missing availability follows from the quantity.
    """
    facts: Any = offer
    if row.untracked and facts.get("quantity") == 0 and "availability" not in facts:
        del facts["quantity"]
    sale = facts.pop("sale_price", None)
    if sale is not None:
        usual = facts.get("price")
        if usual is not None and usual > sale:
            facts.setdefault("compare_at", usual)
        facts["price"] = sale
    incoming = [arrival for arrival in facts.pop("incoming", ()) if arrival]
    if incoming:
        facts["incoming"] = incoming
    if "quantity" in facts and "availability" not in facts:
        facts["availability"] = availability_of(facts["quantity"])
    price, strike = facts.get("price"), facts.get("compare_at")
    if price is not None and strike is not None and strike <= price:
        del facts["compare_at"]
        detail = f"The compare-at price ({strike}) is not above the price ({price}), in minor units; it is left out."
        row.conflict("compare_at", detail)


def offers_of(row: RowDraft, location: str) -> list[OfferStatement]:
    """Return a row's offers; `location` is that of offers without a stated location.

    If there are columns for several locations, the row's prices apply to all of them, and so does a stock word that was found
    in a value of the variant.
    """
    offers: dict[str, Any] = dict(row.offers)
    if row.stock_word is not None:
        offers = offers or {NO_PLACE: {}}
        for offer in offers.values():
            if row.stock_word.quantity is not None:
                offer.setdefault("quantity", row.stock_word.quantity)
            offer.setdefault("availability", row.stock_word.availability)
    common = offers.pop(NO_PLACE) if len(offers) > 1 and NO_PLACE in offers else {}
    for offer in offers.values():
        for name, value in common.items():
            offer.setdefault(name, value)
        _settle(row, offer)
        if offer.get("availability") == "discontinued":
            row.variant.setdefault("discontinued", True)
    return [OfferStatement(at or row.location or location, offer) for at, offer in offers.items() if offer]


def merge_offers(known: list[OfferStatement], offers: list[OfferStatement], row: RowDraft) -> None:
    """Add the offers of another row to a variant's; at the same location, different figures are a conflict."""
    for offer in offers:
        same = next((before for before in known if before.location == offer.location), None)
        if same is None:
            known.append(offer)
            continue
        same.blank &= offer.blank
        facts: Any = same.data
        other: Any = offer.data
        currencies = {given["currency"] for given in (facts, other) if "currency" in given}
        for name, value in other.items():
            if name == "compare_at" and "price" in facts and facts["price"] != other.get("price"):
                continue  # a compare-at price belongs to the price of its own row
            if name in _KEPT and name in facts and (facts[name] != value or len(currencies) > 1):
                if name != "availability":
                    figures = f"{quoted(str(facts[name]))} and {quoted(str(value))}"
                    detail = f"Rows of one item state {figures} as {name}; the first is kept."
                    row.conflict(name, detail)
            elif len(currencies) < 2 or name not in PRICES:
                facts.setdefault(name, value)
