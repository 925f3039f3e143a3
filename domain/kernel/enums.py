"""Enums whose values are kept in rows."""

from enum import StrEnum
from typing import Self


class StoredEnum(StrEnum):
    """What a row says may come from a later release, which was taken back: an unknown word is kept and shown as it is."""

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        if not isinstance(value, str):
            return None
        unknown = str.__new__(cls, value)
        unknown._name_, unknown._value_ = "UNKNOWN", value
        return unknown
