"""What the pictures are called: one for each finish or fabric of a product, and for some products one of it in a room."""

import unicodedata
from typing import Final

from entrypoints.demo.chance import happens

HOME: Final = "https://images.vendor.example"
"""Where the vendors' pictures are; whoever serves the feeds names the address at which it serves the pictures instead."""
LINDGREN: Final = "/lindgren-falk/pictures"
QUILLMERE: Final = "/quillmere/pictures"
WIDTH: Final = 640
HEIGHT: Final = 480
"""Of every picture, in pixels."""
_ROOMS: Final = 16
"""Of a hundred products so many are shown in a room as well."""


def picture_of(folder: str, handle: str, look: str = "") -> str:
    """The address of a product's picture in a finish, a fabric or a tone."""
    return f"{HOME}{folder}/{'-'.join(filter(None, (handle, _plain(look))))}.jpg"


def room_of(folder: str, handle: str) -> str | None:
    """The address of the product's picture in a room; None when there is none."""
    return f"{HOME}{folder}/{handle}-room.jpg" if happens(_ROOMS, "room", handle) else None


def _plain(name: str) -> str:
    """A name in lower case letters, digits and hyphens."""
    letters = unicodedata.normalize("NFKD", name.replace("Ã©", "é")).encode("ascii", "ignore").decode().lower()
    return "-".join("".join(letter if letter.isalnum() else " " for letter in letters).split())
