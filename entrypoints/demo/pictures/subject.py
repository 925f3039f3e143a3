"""What a picture shows: a piece of furniture in one colour, alone or in a room."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from entrypoints.demo.chance import happens, number, one_of
from entrypoints.demo.figures import Size
from entrypoints.demo.pictures.colours import Colour

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Subject:
    """`piece` is what its vendor calls such furniture (`Panel Bed`), `size` width, depth and height in inches.

    `handle` makes it differ from others of its piece, `style` is what it shares with those made like it (a collection).
    """

    piece: str
    size: Size
    colour: Colour
    handle: str
    style: str
    room: bool = False

    def one_of(self, options: Sequence[T], *words: object) -> T:
        """One of the options, another one for other products."""
        return one_of(options, "picture", self.handle, *words)

    def styled(self, options: Sequence[T], *words: object) -> T:
        """One of the options, the same for all pieces of a style."""
        return one_of(options, "picture", self.style, *words)

    def happens(self, percent: int, *words: object) -> bool:
        """Whether so many of a hundred products are such."""
        return happens(percent, "picture", self.handle, *words)

    def between(self, low: float, high: float, *words: object) -> float:
        """A measure from low to high."""
        return low + (high - low) * number(1001, "picture", self.handle, *words) / 1000
