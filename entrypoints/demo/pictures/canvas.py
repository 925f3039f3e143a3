"""A sheet on which furniture is drawn in inches: seen from in front and a little above, in one-point perspective."""

from collections.abc import Iterable, Sequence
from copy import copy
from typing import Final, TypeAlias

from PIL import Image, ImageDraw, ImageFilter

from entrypoints.demo.figures import Size
from entrypoints.demo.pictures.colours import Colour, darker, lighter
from entrypoints.demo.pictures.names import HEIGHT, WIDTH

FINER: Final = 2
"""Drawn so many times as large, and then made smaller: smooth edges."""
_STEP: Final = 2.0
"""Pixels between the slices of what is soft."""
_SHADE_AT: Final = 4
"""Shadows are drawn so many times smaller than the rest: nothing sharp is in them."""
Point: TypeAlias = tuple[float, float, float]
"""Inches to the right of the middle, above the floor, and behind the front."""
Spot: TypeAlias = tuple[float, float]
"""Pixels from the sheet's upper left corner."""
Span: TypeAlias = tuple[float, float]
"""From where to where, in inches."""


class Canvas:
    """A sheet for furniture of a size (width, depth, height in inches), over a backdrop.

    `aside` is how far to the right the eye stands against the width, `above` how high over the floor against the height;
    the furniture takes at most the part `fill` of the sheet. Its lowest edge is at the part `foot` of the sheet's height, else it is in the middle.
    """

    def __init__(
        self,
        backdrop: Image.Image,
        size: Size,
        *,
        aside: float,
        above: float,
        fill: float = 0.74,
        foot: float | None = None,
    ) -> None:
        self.image = backdrop
        self.draw = ImageDraw.Draw(backdrop)
        self.width, self.depth, self.height = size
        self._far = 2.7 * max(size)
        self._eye = (aside * self.width, above * self.height)
        self._scale, self._origin = 1.0, (0.0, 0.0)
        self.at = (0.0, 0.0)
        self._fit(fill, foot)

    def _fit(self, fill: float, foot: float | None) -> None:
        corners = [
            self.spot((x, y, z))
            for x in (-self.width / 2, self.width / 2)
            for y in (0, self.height)
            for z in (0, self.depth)
        ]
        (left, right), (top, bottom) = ((min(side), max(side)) for side in zip(*corners, strict=True))
        wide, high = WIDTH * FINER, HEIGHT * FINER
        self._scale = min(fill * wide / (right - left), fill * high / (bottom - top))
        self._origin = (
            wide / 2 - self._scale * (left + right) / 2,
            high * 0.53 - self._scale * (top + bottom) / 2 if foot is None else high * foot - self._scale * bottom,
        )

    def part(self, size: Size, x: float = 0.0, z: float = 0.0) -> "Canvas":
        """The same sheet for another piece that stands `x` to the right and `z` behind, seen by the same eye."""
        other = copy(self)
        other.width, other.depth, other.height = size
        other.at = (self.at[0] + x, self.at[1] + z)
        return other

    def spot(self, point: Point) -> Spot:
        """Where a point of the furniture is on the sheet."""
        x, y, z = point[0] + self.at[0], point[1], point[2] + self.at[1]
        near = self._scale * self._far / (self._far + z)
        return self._origin[0] + (x - self._eye[0]) * near, self._origin[1] - (y - self._eye[1]) * near

    def long(self, inches: float, z: float = 0.0) -> float:
        """How many pixels a length has that lies `z` inches behind the front."""
        return inches * self._scale * self._far / (self._far + z + self.at[1])

    def face(self, points: Iterable[Point], colour: Colour) -> None:
        """A flat side of something."""
        self.draw.polygon([self.spot(point) for point in points], fill=colour)

    def line(self, points: Iterable[Point], colour: Colour, inches: float) -> None:
        """A thin rod, a seam or a cable."""
        spots = [self.spot(point) for point in points]
        self.draw.line(spots, fill=colour, width=max(1, round(self.long(inches))), joint="curve")

    def plate(
        self, x: Span, y: Span, z: float, colour: Colour, *, radius: float = 0.0, edge: Colour | None = None
    ) -> None:
        """A flat thing that faces us, its corners rounded by `radius` inches."""
        (left, bottom), (right, top) = self.spot((x[0], y[0], z)), self.spot((x[1], y[1], z))
        least = max(0.0, min(right - left, bottom - top) / 2 - 1)
        self.draw.rounded_rectangle(
            (left, top, max(left, right), max(top, bottom)),
            min(self.long(radius, z), least),
            fill=colour,
            outline=edge,
            width=max(2, round(self.long(0.25, z))) if edge else 1,
        )

    def box(self, x: Span, y: Span, z: Span, colour: Colour) -> None:
        """A hard box: its front, its top and the side that is seen."""
        (left, right), (low, high), (near, far) = x, y, z
        if high < self._eye[1]:
            self.face(
                [(left, high, near), (right, high, near), (right, high, far), (left, high, far)], lighter(colour, 0.22)
            )
        for side, seen in ((left, left + self.at[0] > self._eye[0]), (right, right + self.at[0] < self._eye[0])):
            if seen:
                self.face(
                    [(side, low, near), (side, high, near), (side, high, far), (side, low, far)], darker(colour, 0.26)
                )
        self.plate(x, y, near, colour)

    def soft(self, x: Span, y: Span, z: Span, colour: Colour, radius: float) -> None:
        """A cushion: slices from the back to the front, the front a little darker at its lower edge."""
        near, far = z
        (left, top), (deep_left, deep_top) = self.spot((x[0], y[1], near)), self.spot((x[0], y[1], far))
        count = max(2, min(48, int(max(abs(left - deep_left), abs(top - deep_top)) / _STEP)))
        for at in range(count, 0, -1):
            depth = near + (far - near) * at / count
            self.plate(x, y, depth, lighter(darker(colour, 0.10 * at / count), 0.13), radius=radius)
        self.plate(x, y, near, colour, radius=radius)
        inset = min(radius * 0.5, (y[1] - y[0]) * 0.2)
        self.plate(
            (x[0] + inset, x[1] - inset),
            (y[0] + inset * 1.6, y[1] - inset * 0.5),
            near,
            lighter(colour, 0.05),
            radius=radius,
        )

    def disc(self, x: float, y: float, z: float, radius: float, colour: Colour) -> None:
        """A round thing that lies flat."""
        left, right = self.spot((x - radius, y, z))[0], self.spot((x + radius, y, z))[0]
        upper, lower = sorted((self.spot((x, y, z + radius))[1], self.spot((x, y, z - radius))[1]))
        self.draw.ellipse((left, upper, right, max(lower, upper + 1)), fill=colour)

    def drum(self, x: float, y: Span, z: float, radius: Span, colour: Colour) -> None:
        """A round thing that stands: `radius` below and above; lit from the left."""
        low, high = y
        self.disc(x, low, z, radius[0], darker(colour, 0.14))
        bands = 9
        for at in range(bands):
            start, end = -1 + 2 * at / bands, -1 + 2 * (at + 1) / bands
            tone = lighter(colour, 0.18 * (1 - at / 3)) if at < 3 else darker(colour, 0.26 * (at - 3) / (bands - 3))
            self.face(
                [
                    (x + radius[0] * start, low, z), (x + radius[0] * end, low, z),
                    (x + radius[1] * end, high, z), (x + radius[1] * start, high, z),
                ],
                tone,
            )  # fmt: skip
        if high < self._eye[1]:
            self.disc(x, high, z, radius[1], lighter(colour, 0.24))

    def leg(self, foot: Point, top: Point, thick: Span, colour: Colour) -> None:
        """A leg from its foot to its top, so thick there and there; its right half in shade."""
        for left, right, tone in ((-0.5, 0.12, colour), (0.12, 0.5, darker(colour, 0.22))):
            self.face(
                [
                    (foot[0] + thick[0] * left, foot[1], foot[2]), (foot[0] + thick[0] * right, foot[1], foot[2]),
                    (top[0] + thick[1] * right, top[1], top[2]), (top[0] + thick[1] * left, top[1], top[2]),
                ],
                tone,
            )  # fmt: skip

    def oval(self, x: Span, y: Span, z: float, colour: Colour) -> None:
        """An oval that faces us."""
        (left, bottom), (right, top) = self.spot((x[0], y[0], z)), self.spot((x[1], y[1], z))
        self.draw.ellipse((left, top, right, bottom), fill=colour)

    def shadow(self, x: Span, z: Span, *, strength: float = 0.34, y: float = 0.0, round_: bool = False) -> None:
        """What stands there keeps the light from the floor: soft, a little to the right."""
        reach = 0.06 * (x[1] - x[0])
        corners = [
            self.spot(point)
            for point in (
                (x[0] - reach * 0.3, y, z[0]), (x[1] + reach, y, z[0]), (x[1] + reach * 1.6, y, z[1]), (x[0], y, z[1]),
            )
        ]  # fmt: skip
        self._darken(corners, strength, round_=round_, soft=self.long(max(1.2, 0.028 * (x[1] - x[0]))))

    def wall_shadow(self, x: Span, y: Span, z: float, radius: float = 0.0) -> None:
        """The same on the wall behind what hangs there."""
        (left, bottom), (right, top) = self.spot((x[0], y[0], z)), self.spot((x[1], y[1], z))
        away = self.long(0.03 * max(self.width, self.height))
        corners = [(left + away, top + away * 1.5), (right + away, bottom + away * 1.5)]
        self._darken(corners, 0.30, radius=self.long(radius, z), soft=away)

    def _darken(
        self, corners: Sequence[Spot], strength: float, *, soft: float, round_: bool = False, radius: float = 0.0
    ) -> None:
        wide, high = WIDTH * FINER // _SHADE_AT, HEIGHT * FINER // _SHADE_AT
        mask = Image.new("L", (wide, high))
        shade, tone = ImageDraw.Draw(mask), round(255 * strength)
        small = [(x / _SHADE_AT, y / _SHADE_AT) for x, y in corners]
        bounds = (
            min(x for x, _ in small),
            min(y for _, y in small),
            max(x for x, _ in small),
            max(y for _, y in small),
        )
        if round_:
            shade.ellipse(bounds, fill=tone)
        elif len(small) == 2:
            shade.rounded_rectangle(bounds, radius / _SHADE_AT, fill=tone)
        else:
            shade.polygon(small, fill=tone)
        blurred = mask.filter(ImageFilter.GaussianBlur(max(1.0, soft / _SHADE_AT)))
        self.image.paste((46, 38, 36), mask=blurred.resize(self.image.size, Image.Resampling.BILINEAR))
