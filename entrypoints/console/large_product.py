"""A product's JSON of which only those variants are decoded that a page shows: it may have thousands."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

Json = Mapping[str, Any]


class _Head(msgspec.Struct):
    """What a variant is found by."""

    id: str
    merged_from: tuple[str, ...] = ()


_parts = msgspec.json.Decoder(dict[str, msgspec.Raw])
_variants = msgspec.json.Decoder(list[msgspec.Raw])
_heads = msgspec.json.Decoder(list[_Head])


class LargeProduct:
    """One product as the API answers it. `data` is all of it but its variants, which are decoded one by one."""

    def __init__(self, body: bytes) -> None:
        parts = _parts.decode(body)
        raw = parts.pop("variants")
        self.data: dict[str, Any] = {name: msgspec.json.decode(part) for name, part in parts.items()}
        self._raw, self._heads = _variants.decode(raw), _heads.decode(raw)

    @property
    def count(self) -> int:
        """How many variants it has."""
        return len(self._raw)

    def place(self, id: str) -> int | None:
        """Where the variant of that id stands, or the one that it was merged into; the first for any other, None without any."""
        found = (at for at, head in enumerate(self._heads) if head.id == id or id in head.merged_from)
        return next(found, 0 if self._heads else None)

    def variant(self, place: int) -> Json:
        """The variant at that place."""
        found: dict[str, Any] = msgspec.json.decode(self._raw[place])
        return found

    def variants(self, places: Sequence[int]) -> list[Json]:
        """Those at these places."""
        return [self.variant(place) for place in places]
