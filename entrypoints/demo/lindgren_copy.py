"""What Lindgren & Falk says about its furniture: selling texts and points, put together from the maker's phrases."""

from typing import Final

from entrypoints.demo.chance import one_of, some_of

_OPENINGS: Final = (
    "The {name} brings quiet lines and honest joinery to the {room}.",
    "Drawn for everyday use, the {name} settles into the {room} as if it had always been there.",
    "A calm profile and a hand-rubbed surface make the {name} an easy choice for the {room}.",
    "Softened edges and well-judged proportions: the {name} suits a small {room} as well as a large one.",
    "The {name} pairs a generous scale with details that reward a closer look in the {room}.",
)
_SOFT_OPENINGS: Final = (
    "The {name} is drawn low and deep, with seams that follow the frame.",
    "Loose cushions over a firm deck: the {name} is made for long evenings in the {room}.",
    "The {name} pairs clean lines with a seat that gives just enough.",
)
_SMALL_OPENINGS: Final = (
    "The {name} adds a warm note to any {room}.",
    "Made by hand in small batches, the {name} gives the {room} a quiet focus.",
)
_MIDDLES: Final = (
    "Slight differences in tone are part of its character.",
    "It is made to be moved more than once.",
    "The same hands that cut it also pack it.",
    "It was tested in our own workshop before it joined the collection.",
)
_ENDINGS: Final = (
    "Coordinates with the rest of the {collection} collection.",
    "Part of the {collection} collection.",
    "Dust with a soft, dry cloth.",
)
_POINTS: Final = {
    "beds": ("Center-supported slats", "No foundation needed", "Bolt-on rails", "Adjustable floor glides"),
    "storage": ("Soft-close drawer glides", "English dovetail drawers", "Felt-lined top drawer", "Anti-tip kit included",
                "Adjustable shelves", "Cord openings in the back"),
    "tables": ("Hand-rubbed finish", "Solid wood legs", "Heat-resistant topcoat", "Adjustable floor glides"),
    "seats": ("Corner-blocked frame", "Shaped back", "Felt pads included", "Holds up to 300 lb"),
    "soft": ("Kiln-dried hardwood frame", "Removable legs", "High-resiliency foam", "Reversible cushions"),
    "sets": ("Pieces also sold singly", "Ships together", "Finishes from one batch"),
    "lighting": ("Three-way switch", "Takes one E26 bulb", "Eight-foot fabric cord"),
    "decor": ("Hand-applied finish", "Ready to use", "Each one slightly different"),
    "rugs": ("Easy to vacuum", "Low-shed yarn", "Use with a rug pad", "Serged edges"),
}  # fmt: skip
_GROUPS: Final = {
    "Beds": "beds", "Bedroom Sets": "sets", "Dining Sets": "sets",
    "Dining Chairs": "seats", "Stools": "seats", "Benches": "seats", "Dining Benches": "seats",
    "Dining Tables": "tables", "Table Parts": "tables", "Coffee Tables": "tables", "End Tables": "tables",
    "Console Tables": "tables",
    "Sofas": "soft", "Loveseats": "soft", "Accent Chairs": "soft", "Ottomans": "soft", "Sectionals": "soft", "Recliners": "soft",
    "Table Lamps": "lighting", "Floor Lamps": "lighting", "Pendants": "lighting",
    "Mirrors": "decor", "Storage": "decor", "Area Rugs": "rugs",
}  # fmt: skip


def selling_text(handle: str, name: str, place: tuple[str, str], collection: str) -> str:
    """Three sentences about a product; `place` is its category and subcategory."""
    category, subcategory = place
    group = _GROUPS.get(subcategory, "storage")
    small = group in ("lighting", "decor", "rugs")
    openings = _SOFT_OPENINGS if group == "soft" else _SMALL_OPENINGS if small else _OPENINGS
    parts = [one_of(sentences, "copy", handle, at) for at, sentences in enumerate((openings, _MIDDLES, _ENDINGS))]
    room = "room" if small else category.lower()
    return " ".join(parts).format(name=name.split(" (", maxsplit=1)[0], room=room, collection=collection)


def selling_points(handle: str, subcategory: str) -> str:
    """Three points in one cell, parted by semicolons."""
    return "; ".join(some_of(_POINTS[_GROUPS.get(subcategory, "storage")], 3, "points", handle))
