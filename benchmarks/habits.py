"""Furniture of invented vendors, and the same as other vendors write it: names, units, languages, keys left out, sets, siblings."""

from dataclasses import dataclass, replace
from random import Random

KINDS = {
    "chair": "Stuhl",
    "table": "Tisch",
    "sofa": "Sofa",
    "desk": "Schreibtisch",
    "shelf": "Regal",
    "cabinet": "Schrank",
    "bench": "Bank",
    "lamp": "Lampe",
}
SHORT = {"chair": "chr", "table": "tbl", "cabinet": "cab", "shelf": "shlf", "desk": "dsk"}
COLOURS = {
    "white": ("wht", "weiß", "snow white"),
    "black": ("blk", "schwarz", "onyx"),
    "grey": ("gry", "grau", "gray"),
    "oak": ("oak", "Eiche", "oak"),
    "green": ("grn", "grün", "green"),
}
FIRST = "Al Bren Cor Dal El Fen Gar Hol Is Jor Kel Lun Mor Nor Os Pel Quin Ros Sel Tor Ul Ven Wes Yar Zel".split()
MIDDLE = ("", "a", "en", "o", "ir", "und", "es", "alt", "imb", "ok", "ust", "erl")
LAST = "vik dal berg by mark stad holm lund nes sund wick ton ford mere".split()
BRANDS = ("Harrow & Finch", "Nordlicht", "Casa Prima", "Oldtown")


@dataclass(frozen=True)
class Thing:
    """What is sold, apart from how a vendor writes it. Lengths in centimetres."""

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


def things(random: Random, count: int) -> list[Thing]:
    """Families of one name and kind, with siblings of other colours and sizes."""
    many = MIDDLE if count > 1000 else MIDDLE[:1]
    kinds = sorted(KINDS) if count > 1000 else sorted(KINDS)[:1]
    names = [(first + middle + last, kind) for first in FIRST for middle in many for last in LAST for kind in kinds]
    random.shuffle(names)
    made: list[Thing] = []
    for name, kind in names:
        first = Thing(name, random.choice(sorted(KINDS)) if len(kinds) == 1 else kind, "white", 10 * random.randint(4, 20), 10 * random.randint(3, 9),
                      10 * random.randint(4, 20), random.choice(BRANDS), random.randint(10**6, 10**7), float(random.randint(40, 900)))  # fmt: skip
        for colour in random.sample(sorted(COLOURS), random.randint(1, 3)):
            for wider in random.sample((0, 20, 40), random.randint(1, 2)):
                made.append(
                    replace(
                        first,
                        colour=colour,
                        width=first.width + wider,
                        number=first.number + len(made),
                        price=first.price + wider,
                    )
                )
        if len(made) >= count:
            return made[:count]
    return made


def gtin(number: int) -> str:
    """A valid GTIN-13 of a number."""
    digits = f"40{number:010d}"
    return digits + str(-sum(int(d) * (3 if at % 2 else 1) for at, d in enumerate(digits)) % 10)


def metric(thing: Thing) -> dict[str, str]:
    """As its maker writes it: centimetres, everything stated."""
    return {
        "title": f"{thing.name}, {thing.kind}, {thing.colour}, {thing.width}x{thing.depth} cm",
        "brand": thing.brand, "mpn": f"{thing.number:08d}", "gtin": gtin(thing.number), "colour": thing.colour,
        "width": str(thing.width), "depth": str(thing.depth), "height": str(thing.height), "dim_unit": "cm",
        "price": f"{thing.price:.2f}", "currency": "usd",
    }  # fmt: skip


def retold(random: Random, thing: Thing) -> dict[str, str]:
    """As another vendor writes it: one of several habits, and keys left out at random."""
    habit = random.randrange(3)
    colour = COLOURS[thing.colour][habit]
    kind = (SHORT.get(thing.kind, thing.kind), KINDS[thing.kind], thing.kind.upper())[habit]
    title = (
        f"{thing.brand} {thing.name} {kind} {colour}",
        f"{kind} {thing.name} {colour}",
        f"{colour} {kind} - {thing.name}",
    )[habit]
    told = {
        "title": title,
        "brand": thing.brand,
        "colour": colour,
        "price": f"{thing.price * random.uniform(0.9, 1.12):.2f}",
        "dim_unit": "in",
    }
    sides = [thing.width, thing.depth] if random.random() < 0.8 else [thing.depth, thing.width]
    for field, side in zip(("width", "depth", "height"), (*sides, thing.height), strict=True):
        told[field] = f"{round(side / 2.54 * 8) / 8:g}"
    if random.random() < 0.5:
        told["mpn"] = random.choice((f"{thing.number:08d}", f"HF-{thing.number:08d}"))
    if random.random() < 0.4:
        told["gtin"] = gtin(thing.number)
    for field in ("brand", "colour", "depth", "height", "price"):
        if random.random() < 0.15:
            told.pop(field, None)
    if thing.pack > 1:
        told["title"] += random.choice((f" (Set of {thing.pack})", f" Set/{thing.pack}", f", {thing.pack} pack"))
        told.pop("gtin", None)
    return told
