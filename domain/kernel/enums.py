"""Enums whose values are stored."""

from enum import StrEnum
from typing import Self


class StoredEnum(StrEnum):
    """Enum that accepts unknown stored values, which a later release may have written before a downgrade."""

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        if not isinstance(value, str):
            return None
        unknown = str.__new__(cls, value)
        unknown._name_, unknown._value_ = "UNKNOWN", value
        return unknown
