"""Generated furniture as its maker lists it, and as other vendors list it with other names, units and languages."""

from dataclasses import dataclass, replace
from random import Random

GERMAN_KINDS = {
    "chair": "Stuhl",
    "table": "Tisch",
    "sofa": "Sofa",
    "desk": "Schreibtisch",
    "shelf": "Regal",
    "cabinet": "Schrank",
    "bench": "Bank",
    "lamp": "Lampe",
}
SHORT_KINDS = {"chair": "chr", "table": "tbl", "cabinet": "cab", "shelf": "shlf", "desk": "dsk"}
COLOURS = {
    "white": ("wht", "weiß", "snow white"),
    "black": ("blk", "schwarz", "onyx"),
    "grey": ("gry", "grau", "gray"),
    "oak": ("oak", "Eiche", "oak"),
    "green": ("grn", "grün", "green"),
}
FIRST_SYLLABLES = (
    "Al Bren Cor Dal El Fen Gar Hol Is Jor Kel Lun Mor Nor Os Pel Quin Ros Sel Tor Ul Ven Wes Yar Zel".split()
)
MIDDLE_SYLLABLES = ("", "a", "en", "o", "ir", "und", "es", "alt", "imb", "ok", "ust", "erl")
LAST_SYLLABLES = "vik dal berg by mark stad holm lund nes sund wick ton ford mere".split()
BRANDS = ("Harrow & Finch", "Nordlicht", "Casa Prima", "Oldtown")


@dataclass(frozen=True)
class FurnitureItem:
    """Item of furniture, independent of a vendor's notation. Lengths are in centimetres."""

    name: str
    kind: str
    colour: str
    width: int
    depth: int
    height: int
    brand: str
    number: int
    price: float
    pack: int = 1


def generate_items(random: Random, count: int) -> list[FurnitureItem]:
    """Generate items in groups of the same name and kind, which differ in colour and size."""
    middles = MIDDLE_SYLLABLES if count > 1000 else MIDDLE_SYLLABLES[:1]
    kinds = sorted(GERMAN_KINDS) if count > 1000 else sorted(GERMAN_KINDS)[:1]
    names = [
        (first + middle + last, kind)
        for first in FIRST_SYLLABLES
        for middle in middles
        for last in LAST_SYLLABLES
        for kind in kinds
    ]
    random.shuffle(names)
    items: list[FurnitureItem] = []
    for name, kind in names:
        first = FurnitureItem(name, random.choice(sorted(GERMAN_KINDS)) if len(kinds) == 1 else kind, "white", 10 * random.randint(4, 20), 10 * random.randint(3, 9),
                      10 * random.randint(4, 20), random.choice(BRANDS), random.randint(10**6, 10**7), float(random.randint(40, 900)))  # fmt: skip
        for colour in random.sample(sorted(COLOURS), random.randint(1, 3)):
            for extra_width in random.sample((0, 20, 40), random.randint(1, 2)):
                items.append(
                    replace(
                        first,
                        colour=colour,
                        width=first.width + extra_width,
                        number=first.number + len(items),
                        price=first.price + extra_width,
                    )
                )
        if len(items) >= count:
            return items[:count]
    return items


def build_gtin(number: int) -> str:
    """Return a valid GTIN-13 that contains the number."""
    digits = f"40{number:010d}"
    return digits + str(-sum(int(digit) * (3 if position % 2 else 1) for position, digit in enumerate(digits)) % 10)


def render_for_maker(item: FurnitureItem) -> dict[str, str]:
    """Return the texts of an item as its maker lists it: in centimetres and with all fields."""
    return {
        "title": f"{item.name}, {item.kind}, {item.colour}, {item.width}x{item.depth} cm",
        "brand": item.brand, "mpn": f"{item.number:08d}", "gtin": build_gtin(item.number), "colour": item.colour,
        "width": str(item.width), "depth": str(item.depth), "height": str(item.height), "dim_unit": "cm",
        "price": f"{item.price:.2f}", "currency": "usd",
    }  # fmt: skip


def render_for_vendor(random: Random, item: FurnitureItem) -> dict[str, str]:
    """Return the texts of an item as another vendor lists it: in one of three styles, in inches, with random gaps."""
    style = random.randrange(3)
    colour = COLOURS[item.colour][style]
    kind = (SHORT_KINDS.get(item.kind, item.kind), GERMAN_KINDS[item.kind], item.kind.upper())[style]
    title = (
        f"{item.brand} {item.name} {kind} {colour}",
        f"{kind} {item.name} {colour}",
        f"{colour} {kind} - {item.name}",
    )[style]
    texts = {
        "title": title,
        "brand": item.brand,
        "colour": colour,
        "price": f"{item.price * random.uniform(0.9, 1.12):.2f}",
        "dim_unit": "in",
    }
    sides = [item.width, item.depth] if random.random() < 0.8 else [item.depth, item.width]
    for field, side in zip(("width", "depth", "height"), (*sides, item.height), strict=True):
        texts[field] = f"{round(side / 2.54 * 8) / 8:g}"
    if random.random() < 0.5:
        texts["mpn"] = random.choice((f"{item.number:08d}", f"HF-{item.number:08d}"))
    if random.random() < 0.4:
        texts["gtin"] = build_gtin(item.number)
    for field in ("brand", "colour", "depth", "height", "price"):
        if random.random() < 0.15:
            texts.pop(field, None)
    if item.pack > 1:
        texts["title"] += random.choice((f" (Set of {item.pack})", f" Set/{item.pack}", f", {item.pack} pack"))
        texts.pop("gtin", None)
    return texts
