"""Writes figures as vendors do: inches with fractions, prices with commas, article numbers with check digits."""

from collections.abc import Callable
from typing import Final

Size = tuple[float, float, float]
"""Width, depth and height in inches."""

_EIGHTHS: Final = ("", "1/8", "1/4", "3/8", "1/2", "5/8", "3/4", "7/8")


def inches(value: float) -> str:
    """`18.5` as `18 1/2`."""
    whole, eighth = divmod(round(value * 8), 8)
    return f"{whole} {_EIGHTHS[eighth]}".strip()


def dashed(value: float) -> str:
    """`18.5` as `18-1/2`."""
    return inches(value).replace(" ", "-")


def decimal(value: float) -> str:
    """`18.5` as `18.5`."""
    return f"{round(value * 8) / 8:g}"


def _letters_after(size: Size) -> str:
    return " x ".join(f'{inches(side)}"{letter}' for side, letter in zip(size, "WDH", strict=True))


def _spaced_out(size: Size) -> str:
    return " X ".join(f'{dashed(side)}" {letter}' for side, letter in zip(size, "WDH", strict=True))


def _without_marks(size: Size) -> str:
    return " x ".join(f"{decimal(side)}{letter}" for side, letter in zip(size, "WDH", strict=True))


def _letters_before(size: Size) -> str:
    return " x ".join(f'{letter} {decimal(side)}"' for side, letter in zip(size, "WDH", strict=True))


DIMENSION_STYLES: Final[tuple[Callable[[Size], str], ...]] = (
    _letters_after,
    _spaced_out,
    _without_marks,
    _letters_before,
)


def dollars(amount: float, style: int) -> str:
    """A price of whole dollars or cents; `style` 0 with sign and comma, 1 bare, 2 with a sign and a blank."""
    if style == 1:
        return f"{amount:.2f}"
    return f"${amount:,.2f}" if style == 0 else f"$ {amount:,.0f}.00"


def with_check_digit(payload: str) -> str:
    """The article number that these digits begin (GTIN: weights 3 and 1 from the right)."""
    total = sum(int(digit) * (3 if at % 2 == 0 else 1) for at, digit in enumerate(reversed(payload)))
    return f"{payload}{-total % 10}"


def article_number(counter: int) -> str:
    """A GTIN-13 of the prefix that GS1 keeps for demonstrations."""
    return with_check_digit(f"952{counter:09d}")
