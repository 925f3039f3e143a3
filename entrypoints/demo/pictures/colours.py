"""What the vendors' names of finishes, fabrics and tones look like, and lighter and darker shades of them."""

from typing import Final, TypeAlias

Colour: TypeAlias = tuple[int, int, int]
"""Red, green and blue, 0 to 255."""

_WHITE: Final[Colour] = (255, 253, 249)
_DARK: Final[Colour] = (38, 31, 32)

_NAMED: Final = {
    "Umber Oak": "9a6f4a", "Sand": "d9c3a0", "Honey Ash": "d8a765", "Charred Pine": "4a4340",
    "Weathered Gray": "a39b91", "Cloud White": "efebe3", "Natural Walnut": "7d5239", "Ebony": "3d3431",
    "Café au Lait": "c3a07c", "Fjord Green/Natural": "64806f",
    "Oat": "e2d6bf", "Moss": "808a5c", "Clay": "b97a5b", "Flax": "d3bf96", "Dusk Blue": "71859c",
    "Pebble": "aca69c", "Pine": "3f6152", "Rust": "ab5a37", "Ink": "39455e", "Tobacco": "7a5233",
    "Cognac": "a8683a", "Silver/Warm Gray": "b7b1a8", "Aged Brass": "b3924d", "Matte Black": "3a3938",
    "Brushed Nickel": "aeadaa", "Bronze": "765839", "Chalk White": "f0ece4", "Natural": "d0b083",
    "Soft Gold": "cfae69", "Ivory": "e9e0cd", "Slate/Multi": "6f7a85", "Terracotta": "bd6c4b",
    "Slate Blue": "65788f", "Fern": "718960", "Charcoal": "55555a", "Ecru": "dfd2b6", "Saddle": "a06b40",
    "Chestnut": "7a4a33", "Ink Black": "393940", "Natural Oak": "cfab7a", "Smoked Oak": "7f6450",
    "Walnut": "81573c", "Black Ash": "41403f", "Brass": "bf9c51", "White": "f1eee8",
    "Teak/Sand": "b98551", "Graphite": "5b5e61", "Sage": "a0ab8d", "Navy/Cream": "3b4a66",
}  # fmt: skip
DEFAULT: Final[Colour] = (176, 148, 116)
"""Of what comes in one finish that is not named."""
WOODS: Final[tuple[Colour, ...]] = ((126, 91, 62), (186, 146, 98), (70, 56, 48), (158, 118, 80))
"""Of legs and frames below a fabric."""
LINENS: Final[tuple[Colour, ...]] = ((238, 231, 219), (226, 219, 208), (214, 211, 203), (232, 222, 206))
"""Of seats, shades and sheets."""
ACCENTS: Final[tuple[Colour, ...]] = (
    (186, 116, 84), (110, 132, 118), (98, 118, 142), (204, 166, 98), (152, 122, 134), (128, 136, 98),
)  # fmt: skip
"""Of pillows, blankets and books."""
GLASS: Final[Colour] = (219, 229, 230)


def colour_of(name: str) -> Colour:
    """What a finish, a fabric or a tone looks like; DEFAULT where it has no name. Raises KeyError for an unknown one."""
    if not name:
        return DEFAULT
    text = _NAMED[name.replace("Ã©", "é")]
    return int(text[:2], 16), int(text[2:4], 16), int(text[4:], 16)


def mixed(one: Colour, other: Colour, part: float) -> Colour:
    """The first colour with a part (0 to 1) of the other."""
    red, green, blue = (round(a + (b - a) * part) for a, b in zip(one, other, strict=True))
    return red, green, blue


def lighter(colour: Colour, part: float) -> Colour:
    """Nearer to white by a part."""
    return mixed(colour, _WHITE, part)


def darker(colour: Colour, part: float) -> Colour:
    """Nearer to a warm black by a part."""
    return mixed(colour, _DARK, part)
