"""The geometry of a bar a day, drawn as SVG without a script."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

WIDTH: Final = 320
HEIGHT: Final = 72
_GAP: Final = 2.0


@dataclass(frozen=True, slots=True)
class Bar:
    """A day's bar: its place and size in pixels, the day, and how much."""

    x: float
    y: float
    width: float
    height: float
    day: date
    value: int


def bars(days: Sequence[tuple[date, int]]) -> list[Bar]:
    """A bar for each day; the highest fills the height, and whatever is more than nothing can be seen."""
    most = max((value for _, value in days), default=0)
    step = WIDTH / max(len(days), 1)
    found = []
    for place, (day, value) in enumerate(days):
        height = max(1.5, value / most * HEIGHT) if value and most else 0.0
        found.append(
            Bar(round(place * step, 1), round(HEIGHT - height, 1), round(step - _GAP, 1), round(height, 1), day, value)
        )
    return found
