"""From drafts to the data of a product and of its variants."""

import re
from typing import Any, Final

from domain.catalogue.categories import by_slug
from domain.catalogue.data import Carton, Component, Dimensions, ProductData, VariantData
from domain.ingestion.drafts.draft import ProductDraft, RowDraft, kind_of_product
from domain.ingestion.drafts.pieces import counted, of_several, with_sizes, with_subtitle
from domain.ingestion.drafts.titled_sizes import settle
from domain.ingestion.values.dimensions import parse_dimensions
from domain.ingestion.values.media import media_list
from domain.ingestion.values.parsed import Fault
from domain.ingestion.values.rugs import parse_rug_size
from domain.ingestion.values.sides import RUG, Sided, place
from domain.ingestion.values.text import stated
from domain.ingestion.vocabulary.kinds import brick_of, kind_in_path
from domain.kernel.bounds import ITEM_CHARS
from domain.kernel.problems import ProblemKind

_COLOUR_AXES: Final = frozenset(("color", "colour", "farbe"))
_FINISH_AXES: Final = frozenset(("finish", "wood finish"))
_SIZE_AXES: Final = frozenset(("size", "rug size", "dimensions", "grösse", "größe", "tamaño"))
_LETTERED: Final = re.compile(r"\d\s?(?:mm|cm|in|\")\s?[lwdh]\s?[x×]\s?\d", re.I)
"""Sizes in options are taken when letters say which side is which (`720mm L x 530mm W x 510mm H`)."""


def add_media(row: RowDraft) -> None:
    """Add a row's pictures to its product, each address once; a position or text for them holds when there is one."""
    media = row.product.media
    single = len(row.media_urls) == 1
    for url in row.media_urls:
        if url in media:
            continue
        item: dict[str, Any] = {"url": url}
        alt = row.media_alts.get(url) if row.media_alts else row.media_alt if single else None
        if alt and len(alt) <= ITEM_CHARS:
            item["alt"] = alt
        elif alt:
            row.product.leave_out("media.alt", 1, row.line, None)
        if single and row.media_position:
            item["order"] = row.media_position
        media[url] = item


def finish_product(product: ProductDraft) -> tuple[ProductData, bool]:
    """A product's data, and whether its rows say that it is discontinued."""
    data = product.data
    path, further = product.categories()
    if path:
        data["category_path"] = list(path)
    for other in further:
        product.tags[" > ".join(other)] = None
    _classify(data, product)
    if product.tags:
        data["tags"] = list(product.tags)
    if product.features or product.extras:
        # What sizes say beside their sides follows the vendor's own selling points.
        data["features"] = list({**product.features, **product.extras})
    if product.compliance:
        data["compliance"] = product.compliance  # type: ignore[typeddict-item]
    if product.media:
        data["media"] = media_list(list(product.media.values()), product.hero)
    variants = product.variants.values()
    gone = bool(variants) and all(variant.data.get("discontinued") is True for variant in variants)
    return data, gone or product.discontinued == {True}


def _classify(data: ProductData, product: ProductDraft) -> None:
    """The category that a path of Google's taxonomy means, and the GPC brick of the vendor's own path.

    The vendor's own path files nothing: that is for the source's category rules, and people who set them.
    """
    stated = kind_in_path(product.google_category)
    category = by_slug(stated.slug) if stated else None
    if category is not None:
        data.setdefault("category", category)
    kind = kind_in_path(product.category_path())
    brick = brick_of(kind, data.get("title", "")) if kind else None
    if brick is not None:
        data.setdefault("gpc_brick", brick)


def _axes(row: RowDraft) -> dict[str, str]:
    axes = row.axes or {}
    if row.option_values:
        names = row.product.option_names
        for at in sorted(row.option_values):
            value, name = row.option_values[at], names.get(at) or f"Option {at + 1}"
            if value != "Default Title":
                axes = {**axes, name: value}
    return axes


def _from_axes(row: RowDraft, axes: dict[str, str], data: VariantData) -> None:
    """Colour, finish and a rug's size that stand on an axis."""
    for name, value in axes.items():
        low = name.lower()
        if low in _COLOUR_AXES:
            data.setdefault("colour", value)
        elif low in _FINISH_AXES:
            data.setdefault("finish", value)
        elif low in _SIZE_AXES and row.spread is None and row.rug is None:
            if _is_rug(row):
                _rug_from(row, value)
            elif _LETTERED.search(value):
                row.spread = parse_dimensions(value.rpartition("|")[2], None, kind_of_product(row)).value


def _is_rug(row: RowDraft) -> bool:
    return kind_of_product(row) == RUG


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


def _dimensions(row: RowDraft) -> Dimensions:
    """The sides of the columns, then those of the string; a length among them finds its side."""
    found: dict[str, Any] = dict(row.dimensions)
    if "length" in found:
        kind = kind_of_product(row)
        box = ("length", "width", "depth", "height", "diameter")
        items: list[Sided] = [(found[side], side) for side in box if side in found]
        sides = place(items, "length", kind)
        row.report("dimensions", None, sides.faults)
        found = {**{side: value for side, value in found.items() if side not in box}, **(sides.value or {})}
    spread = row.spread
    if spread is None:
        return found  # type: ignore[return-value]
    return {**spread.dimensions, **found} if found else spread.dimensions  # type: ignore[typeddict-item]


def _components(row: RowDraft) -> list[Component]:
    """Parts by their codes; the sizes of named pieces go to the parts that they are.

    A piece that is made of several parts, or of none that can be told, stands beside them without a count.
    """
    parts: list[Component] = list(row.components or ())
    title = with_subtitle(
        row.variant.get("title") or row.product.data.get("title"), row.product.data.get("description")
    )
    pieces, told = counted(row.spread.components if row.spread else (), title)
    if not parts or not pieces:
        if told is not None:
            row.report("components", None, (Fault(ProblemKind.CONFLICT, told),))
        return parts or pieces
    sized, left = with_sizes(parts, pieces)
    if not of_several(title) and len(left) == len(pieces):
        # Of one piece, what a size is labelled with is a side of it, or the way it stands.
        return sized
    return [*sized, *left]


def _cartons(row: RowDraft) -> list[Carton]:
    """The boxes that state something, with their count: one each unless the row says otherwise."""
    boxes = [carton for _, carton in sorted((row.cartons or {}).items()) if carton]
    fits = row.carton_count is None or row.carton_count == len(boxes)
    return [carton if "count" in carton or not fits else {**carton, "count": 1} for carton in boxes]


def finish_variant(row: RowDraft) -> VariantData:
    """A row's variant data."""
    data = row.variant
    if row.axes or row.option_values:
        axes = _axes(row)
        if axes:
            data["axes"] = axes
            _from_axes(row, axes, data)
    if row.materials:
        data["materials"] = list(row.materials)
    if dimensions := settle(row, _dimensions(row) if row.dimensions or row.spread else {}):
        data["dimensions"] = dimensions
    if (row.components or (row.spread and row.spread.components)) and (components := _components(row)):
        data["components"] = components
    if row.cartons and (cartons := _cartons(row)):
        data["cartons"] = cartons
    if row.rug:
        data["rug"] = row.rug
    if row.variant_media:
        alts = {url: alt for url, alt in (row.media_alts or {}).items() if len(alt) <= ITEM_CHARS}
        urls = [{"url": url, **({"alt": alts[url]} if url in alts else {})} for url in dict.fromkeys(row.variant_media)]
        data["media"] = media_list(urls, None)
    return data
