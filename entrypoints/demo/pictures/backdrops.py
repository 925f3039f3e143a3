"""What is behind the furniture: a plain studio, or a room with a window, a picture, a plant."""

from functools import cache
from typing import Final

from PIL import Image, ImageDraw, ImageFilter

from entrypoints.demo.pictures.canvas import FINER
from entrypoints.demo.pictures.colours import ACCENTS, LINENS, Colour, darker, lighter
from entrypoints.demo.pictures.names import HEIGHT, WIDTH
from entrypoints.demo.pictures.subject import Subject

_WIDE: Final = WIDTH * FINER
_HIGH: Final = HEIGHT * FINER
_HORIZON: Final = 0.66
"""Where the floor begins, against the height."""
STUDIOS: Final[tuple[Colour, ...]] = (
    (240, 235, 228), (234, 238, 233), (232, 236, 240), (243, 234, 228), (238, 236, 241), (241, 238, 226),
)  # fmt: skip
WALLS: Final[tuple[Colour, ...]] = ((222, 214, 202), (204, 212, 204), (206, 214, 222), (228, 212, 202), (214, 208, 214))
_FLOORS: Final[tuple[Colour, ...]] = ((196, 168, 136), (178, 150, 122), (206, 186, 160), (168, 146, 128))


def backdrop(of: Subject) -> Image.Image:
    """A sheet of its own to draw on."""
    if of.room:
        return _room(of)
    return _studio(of.one_of(range(len(STUDIOS)), "studio")).copy()


@cache
def _studio(at: int) -> Image.Image:
    """A wall that goes over into the floor; lit from above left."""
    tone = STUDIOS[at]
    sheet = _graded(lighter(tone, 0.35), tone, _WIDE, _HIGH)
    floor = _graded(darker(tone, 0.03), darker(tone, 0.10), _WIDE, _HIGH)
    mask = Image.new("L", (1, _HIGH))
    for y in range(_HIGH):
        mask.putpixel((0, y), round(255 * min(1.0, max(0.0, (y / _HIGH - _HORIZON + 0.06) / 0.12))))
    sheet.paste(floor, mask=mask.resize((_WIDE, _HIGH)))
    return sheet


def _graded(upper: Colour, lower: Colour, wide: int, high: int) -> Image.Image:
    mask = Image.linear_gradient("L").resize((wide, high), Image.Resampling.BILINEAR)
    return Image.composite(Image.new("RGB", (wide, high), lower), Image.new("RGB", (wide, high), upper), mask)


def _room(of: Subject) -> Image.Image:
    wall, floor = of.one_of(WALLS, "wall"), of.one_of(_FLOORS, "floor")
    sheet = _graded(lighter(wall, 0.16), darker(wall, 0.05), _WIDE, _HIGH)
    draw, line = ImageDraw.Draw(sheet), round(_HIGH * _HORIZON)
    draw.rectangle((0, line, _WIDE, _HIGH), fill=floor)
    for at in range(-9, 10):
        x = _WIDE / 2 + at * _WIDE * 0.075
        draw.line((x, line, _WIDE / 2 + at * _WIDE * 0.2, _HIGH), fill=darker(floor, 0.12), width=2)
    draw.rectangle((0, line - 26, _WIDE, line), fill=lighter(wall, 0.55))
    draw.line((0, line, _WIDE, line), fill=darker(wall, 0.3), width=3)
    left = of.happens(50, "left")
    if of.happens(50, "window"):
        _window(sheet, draw, 0.07 if left else 0.70, line)
    else:
        _frames(draw, of, 0.10 if left else 0.68)
    if of.happens(65, "plant"):
        _plant(draw, of, 0.90 if left else 0.10, line)
    return sheet


def _window(sheet: Image.Image, draw: ImageDraw.ImageDraw, at: float, line: int) -> None:
    """A window, and its light on the floor."""
    x, y, wide, high = _WIDE * at, _HIGH * 0.10, _WIDE * 0.23, _HIGH * 0.42
    draw.rectangle((x - 12, y - 12, x + wide + 12, y + high + 12), fill=(247, 244, 238))
    draw.rectangle((x, y, x + wide, y + high), fill=(226, 236, 240))
    draw.ellipse((x + wide * 0.1, y + high * 0.7, x + wide * 1.0, y + high * 1.0), fill=(202, 214, 198))
    draw.rectangle((x - 12, y + high, x + wide + 12, y + high + 14), fill=(240, 236, 228))
    for part in (0.5,):
        draw.rectangle((x + wide * part - 5, y, x + wide * part + 5, y + high), fill=(247, 244, 238))
    draw.rectangle((x, y + high * 0.5 - 4, x + wide, y + high * 0.5 + 4), fill=(247, 244, 238))
    mask = Image.new("L", (_WIDE // 4, _HIGH // 4))
    light = ImageDraw.Draw(mask)
    lean = 0.10 * _WIDE if at < 0.4 else -0.10 * _WIDE
    spots = [
        (x, line + 30),
        (x + wide, line + 30),
        (x + wide + lean * 1.6, _HIGH * 0.92),
        (x + lean * 1.2, _HIGH * 0.92),
    ]
    light.polygon([(a / 4, b / 4) for a, b in spots], fill=70)
    sheet.paste((255, 246, 226), mask=mask.filter(ImageFilter.GaussianBlur(4)).resize(sheet.size))


def _frames(draw: ImageDraw.ImageDraw, of: Subject, at: float) -> None:
    """One or two pictures on the wall."""
    for turn in range(of.one_of((1, 2), "frames")):
        x, y = _WIDE * (at + 0.125 * turn), _HIGH * (0.12 + 0.05 * turn)
        wide, high = _WIDE * 0.11, _HIGH * of.between(0.2, 0.26, "frame", turn)
        draw.rectangle((x + 5, y + 9, x + wide + 7, y + high + 10), fill=(176, 166, 154))
        draw.rectangle((x, y, x + wide, y + high), fill=(92, 76, 62))
        draw.rectangle((x + 7, y + 7, x + wide - 7, y + high - 7), fill=(246, 242, 234))
        tone = of.one_of(ACCENTS, "art", turn)
        draw.ellipse(
            (x + wide * 0.3, y + high * 0.22, x + wide * 0.7, y + high * 0.22 + wide * 0.4), fill=lighter(tone, 0.2)
        )
        draw.rectangle((x + wide * 0.24, y + high * 0.6, x + wide * 0.76, y + high * 0.78), fill=darker(tone, 0.1))


def _plant(draw: ImageDraw.ImageDraw, of: Subject, at: float, line: int) -> None:
    """Long leaves in a pot."""
    x, foot = _WIDE * at, line + _HIGH * 0.07
    pot, leaf = (
        of.one_of((*LINENS, *ACCENTS[:2]), "pot"),
        of.one_of(((96, 124, 92), (112, 134, 108), (82, 108, 88)), "leaf"),
    )
    for turn, lean in enumerate((-0.9, -0.55, -0.2, 0.15, 0.5, 0.85)):
        high = _HIGH * of.between(0.24, 0.36, "leaf", turn) * (1 - 0.25 * abs(lean))
        tip = (x + _WIDE * 0.075 * lean, foot - _HIGH * 0.12 - high)
        middle = (x + _WIDE * 0.05 * lean, foot - _HIGH * 0.12 - high * 0.55)
        draw.polygon(
            [
                (x - 5, foot - _HIGH * 0.1),
                (middle[0] - 22, middle[1]),
                tip,
                (middle[0] + 22, middle[1]),
                (x + 5, foot - _HIGH * 0.1),
            ],
            fill=lighter(leaf, 0.12) if turn % 2 else leaf,
        )
    wide = _WIDE * 0.042
    draw.ellipse((x - wide, foot - 12, x + wide * 1.3, foot + 12), fill=(120, 104, 90))
    draw.polygon(
        [
            (x - wide, foot - _HIGH * 0.13),
            (x + wide, foot - _HIGH * 0.13),
            (x + wide * 0.76, foot),
            (x - wide * 0.76, foot),
        ],
        fill=darker(pot, 0.06),
    )
