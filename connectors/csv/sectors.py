"""Follows the chains of sectors in the container of old Office files, each sector once."""

import struct
from collections.abc import Sequence

from connectors.sdk.errors import BadData

DAMAGED = "the workbook is damaged: it cannot be read"
_END = 0xFFFFFFFE


class Sectors:
    """The sectors of a container, or of its stream of small ones; `ahead` are the bytes before the first."""

    def __init__(self, data: bytes, size: int, ahead: int | None = None) -> None:
        self._data = data
        self._size = size
        self._ahead = size if ahead is None else ahead

    def at(self, number: int) -> bytes:
        """One sector. Raises BadData where there is none of that number."""
        start = self._ahead + number * self._size
        if start >= len(self._data):
            raise BadData(DAMAGED)
        return self._data[start : start + self._size]

    def chain(self, number: int, table: Sequence[int], most: int | None = None) -> bytes:
        """The sectors from this one on to the end of their chain, or to `most` bytes. Raises BadData for a circle."""
        found: list[bytes] = []
        seen: set[int] = set()
        left = len(self._data) if most is None else most
        while number != _END and left > 0:
            if number in seen or number >= len(table):
                raise BadData(DAMAGED)
            seen.add(number)
            found.append(self.at(number)[:left])
            left -= len(found[-1])
            number = table[number]
        return b"".join(found)

    def numbers(self, data: bytes) -> tuple[int, ...]:
        """Bytes as numbers of sectors."""
        return struct.unpack(f"<{len(data) // 4}I", data[: len(data) // 4 * 4])
