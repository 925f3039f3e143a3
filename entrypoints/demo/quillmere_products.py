"""Quillmere Home's products in the form in which shops of its kind publish them (`/products.json`)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product as crossed
from typing import Any, Final

from entrypoints.demo import lindgren_columns as col
from entrypoints.demo.chance import happens, number, one_of, some_of
from entrypoints.demo.data import load
from entrypoints.demo.figures import Size, inches
from entrypoints.demo.lindgren_catalogue import sound_rows
from entrypoints.demo.lindgren_columns import Row
from entrypoints.demo.pictures.names import HEIGHT, LINDGREN, QUILLMERE, WIDTH, picture_of, room_of

Product = dict[str, Any]
MOST_VARIANTS: Final = 6
_FIRST_PRODUCT: Final = 8_100_000_000_000
_FIRST_VARIANT: Final = 44_200_000_000_000
_FIRST_IMAGE: Final = 39_500_000_000_000
_WHEN: Final = "2026-09-14T09:00:00-04:00"
_NO_OPTION: Final = "Default Title"
_DATA: Final = load("quillmere")
PER_KIND: Final[int] = _DATA["per_kind"]
RESOLD: Final[int] = _DATA["resold"]


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of product. `palette` and `sizes` are names of those tables; no sizes where blank."""

    letters: str
    title: str
    product_type: str
    size: Size
    grams: int
    price: int
    palette: str
    sizes: str = ""
    tags: tuple[str, ...] = ()


KINDS: Final = tuple(Kind(**entry) for entry in _DATA["kinds"])


@cache
def products() -> tuple[Product, ...]:
    """Everything in the shop, newest first: its own furniture, and some of Lindgren & Falk's."""
    return tuple(reversed([*own_products(), *_resold()]))


def own_products() -> Iterator[Product]:
    """The shop's own furniture: `PER_KIND` of each of the `KINDS`, in their order."""
    names = _DATA["names"]
    for place, kind in enumerate(KINDS):
        for turn in range(PER_KIND):
            name = names[(place * 7 + turn) % len(names)]
            serial = place * PER_KIND + turn
            yield _product(serial, kind, name)


def _product(serial: int, kind: Kind, name: str) -> Product:
    title = f"{name} {kind.title}"
    handle = title.lower().replace(" ", "-")
    palette, sizes = _DATA["palettes"][kind.palette], _DATA["sizes"].get(kind.sizes, ())
    colours = some_of(palette, min(len(palette), 1 + number(4, "colours", handle)), "palette", handle)
    choices = list(crossed(colours or [""], sizes or (("", 1.0),)))[:MOST_VARIANTS]
    base = kind.price + 10 * number(30, "price", handle)
    variants = [
        _variant(
            serial * 10 + at,
            options=[value for value in (colour, size) if value],
            sku=f"QH-{kind.letters}{name[:3].upper()}-{at + 1:02d}",
            price=f"{round(base * factor)}.00",
            grams=round(kind.grams * factor),
        )
        for at, (colour, (size, factor)) in enumerate(choices)
    ]
    option_names = [label for label, there in (("Color", colours), ("Size", sizes)) if there]
    return _whole(serial, title, kind.product_type, _DATA["vendor"], _body(kind, handle), variants, option_names) | {
        "tags": [*kind.tags, one_of(("new", "best seller", "made to order", "quick ship"), "tag", handle)]
    }


def _body(kind: Kind, handle: str) -> str:
    width, depth, height = (inches(side + number(3, "body", handle) / 2) for side in kind.size)
    lines = [f"<p>{one_of(_DATA['sentences'], 'sentence', handle)} The size &amp; shape suit most rooms.</p>"]
    if kind.product_type != "Rugs":
        lines.append(f"<ul><li>Overall: {width}&quot;W x {depth}&quot;D x {height}&quot;H</li><li>Imported</li></ul>")
    return "".join(lines)


def _variant(serial: int, *, options: Sequence[str], sku: str, price: str, grams: int) -> Product:
    """One variant. A few have no SKU or no weight, as in every shop; some are on sale, a few at a higher price."""
    usual = round(float(price) * (1.2 if happens(90, "sale", sku) else 0.9) / 10) * 10
    listed = [*options, None, None, None][:3] if options else [_NO_OPTION, None, None]
    return {
        "id": _FIRST_VARIANT + serial * 1024,
        "title": " / ".join(options) or _NO_OPTION,
        **{f"option{at}": value for at, value in enumerate(listed, start=1)},
        "sku": "" if happens(3, "uncoded", sku) else sku,
        "requires_shipping": True,
        "taxable": True,
        "featured_image": None,
        "available": not happens(14, "sold out", sku),
        "price": price,
        "grams": 0 if happens(5, "unweighed", sku) else grams,
        "compare_at_price": f"{usual}.00" if happens(25, "compared", sku) else None,
        "created_at": _WHEN,
        "updated_at": _WHEN,
    }


def _whole(
    serial: int,
    title: str,
    product_type: str,
    vendor: str,
    body: str,
    variants: list[Product],
    options: list[str],
    pictures: Sequence[str | None] = (),
) -> Product:
    """The product; with its own pictures where none are given."""
    id = _FIRST_PRODUCT + serial * 512
    handle = "-".join("".join(letter if letter.isalnum() else " " for letter in title.lower()).split())
    for position, variant in enumerate(variants, start=1):
        variant.update(position=position, product_id=id)
    named = options or ["Title"]
    return {
        "id": id,
        "title": title,
        "handle": handle,
        "body_html": body,
        "published_at": _WHEN,
        "created_at": _WHEN,
        "updated_at": _WHEN,
        "vendor": vendor,
        "product_type": product_type,
        "tags": [],
        "variants": variants,
        "images": _images(serial, id, pictures or [picture_of(QUILLMERE, handle), room_of(QUILLMERE, handle)]),
        "options": [
            {
                "name": name,
                "position": at,
                "values": list(dict.fromkeys(variant[f"option{at}"] for variant in variants)),
            }
            for at, name in enumerate(named, start=1)
        ],
    }


def _images(serial: int, product: int, pictures: Sequence[str | None]) -> list[Product]:
    return [
        {
            "id": _FIRST_IMAGE + serial * 8 + at,
            "position": at,
            "product_id": product,
            "variant_ids": [],
            "width": WIDTH,
            "height": HEIGHT,
            "src": picture,
            "created_at": _WHEN,
            "updated_at": _WHEN,
        }
        for at, picture in enumerate(filter(None, pictures), start=1)
    ]


def _resold() -> Iterator[Product]:
    """Pieces of the other vendor, single things only, each in all its finishes, with its own item numbers."""
    groups: dict[str, list[Row]] = {}
    for row in sound_rows():
        if row[col.KIND] == "Single Item" and not row.get(col.SIZE) and not row.get(col.CONFIGURATION):
            groups.setdefault(row[col.HANDLE], []).append(row)
    chosen = some_of([handle for handle in groups if len(groups[handle]) <= MOST_VARIANTS], RESOLD, "resold")
    for at, handle in enumerate(chosen):
        yield _resold_product(len(KINDS) * PER_KIND + at, groups[handle])


def _resold_product(serial: int, rows: list[Row]) -> Product:
    first = rows[0]
    label = "Finish" if first[col.FINISH] else "Color"
    column = col.FINISH if first[col.FINISH] else col.COLOR
    variants = [
        _variant(
            serial * 10 + at,
            options=[row[column].replace("CafÃ©", "Café")],
            sku=row[col.ITEM],
            price=f"{_retail(row):.2f}",
            grams=round(float(row[col.WEIGHT]) * 453.59237),
        )
        for at, row in enumerate(rows)
    ]
    title = f"{first[col.BRAND]} {first[col.NAME].split(' (')[0]}"
    body = f"<p>{first[col.COPY]}</p><p>{first[col.DIMENSIONS]}</p>".replace('"', "&quot;")
    kind = first[col.SUBCATEGORY]
    pictures = [first[col.IMAGE_1], room_of(LINDGREN, first[col.HANDLE])]
    return _whole(serial, title, kind, first[col.BRAND], body, variants, [label], pictures) | {
        "tags": ["lindgren & falk"]
    }


def _retail(row: Row) -> float:
    return round(float(row[col.MSRP].strip("$ ").replace(",", "")) * 0.9) - 0.01
