"""From a subject to a picture's bytes: chooses where the eye stands, and who draws such furniture."""

import io
from collections.abc import Callable, Mapping
from typing import Final

from PIL import Image

from entrypoints.demo.pictures import accents, beds, cases, seats, sofas, tables
from entrypoints.demo.pictures.backdrops import backdrop
from entrypoints.demo.pictures.canvas import Canvas
from entrypoints.demo.pictures.names import HEIGHT, WIDTH
from entrypoints.demo.pictures.subject import Subject

DRAWN: Final[Mapping[str, Callable[[Canvas, Subject], None]]] = {
    **accents.DRAWN, **beds.DRAWN, **cases.DRAWN, **seats.DRAWN, **sofas.DRAWN, **tables.DRAWN,
}  # fmt: skip
"""Who draws a piece of furniture."""
_QUALITY: Final = 86
_STANDING: Final = 0.88
_HUNG: Final = {
    "Pendant": 0.45, "Pendant Light": 0.45, "Round Wall Mirror": 0.54, "Arched Wall Mirror": 0.54, "Dresser Mirror": 0.54,
}  # fmt: skip
"""Where the lowest edge is in a room, against the picture's height: of what stands on the floor, and of what hangs."""


def picture(of: Subject) -> bytes:
    """The picture as JPEG of WIDTH × HEIGHT pixels, the same bytes for the same subject. Raises KeyError for an unknown piece."""
    draw = DRAWN[of.piece]
    aside, above = _eye(of)
    fill, foot = 0.74, None
    if of.room:
        fill, foot = (0.40, _HUNG[of.piece]) if of.piece in _HUNG else (0.60, _STANDING)
    sheet = Canvas(backdrop(of), of.size, aside=aside, above=above, fill=fill, foot=foot)
    draw(sheet, of)
    made = sheet.image.resize((WIDTH, HEIGHT), Image.Resampling.BOX)
    out = io.BytesIO()
    made.save(out, "JPEG", quality=_QUALITY, subsampling=0, optimize=False)
    return out.getvalue()


def _eye(of: Subject) -> tuple[float, float]:
    """How far aside and above the eye stands, against width and height: over what is low, beside what is narrow."""
    width, _, height = of.size
    side = 1 if of.happens(50, "side") else -1
    if height < 1:
        return 0.0, width * (0.5 if of.room else 3.2) / height
    above = (0.5 * height + 0.42 * max(width, height)) / height
    narrow = 0.45 if of.piece in sofas.DRAWN else 0.9
    aside = narrow if width < 40 else 0.5 if width < 60 else 0.28
    return side * aside, above
