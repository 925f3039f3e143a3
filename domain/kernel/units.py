"""Units of lengths and weights, and exact conversions between them."""

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Final

INCHES_BY_UNIT: Final[dict[str, Fraction]] = {
    "in": Fraction(1),
    "ft": Fraction(12),
    "mm": Fraction(5, 127),
    "cm": Fraction(50, 127),
    "m": Fraction(5000, 127),
}
POUNDS_BY_UNIT: Final[dict[str, Fraction]] = {
    "lb": Fraction(1),
    "oz": Fraction(1, 16),
    "g": Fraction(100000, 45359237),
    "kg": Fraction(100000000, 45359237),
}
UNIT_SYSTEMS: Final[Mapping[str, tuple[str, str]]] = {"metric": ("cm", "kg"), "imperial": ("in", "lb")}
"""Units of lengths and weights by the name of the unit system."""


def convert_unit(value: Decimal, unit: str, target: str) -> Decimal:
    """Convert a length or weight to another unit, without rounding. Raises KeyError unless both are lengths or both are weights."""
    factors = INCHES_BY_UNIT if unit in INCHES_BY_UNIT else POUNDS_BY_UNIT
    ratio = factors[unit] / factors[target]
    return value * ratio.numerator / ratio.denominator
