"""Long lists and texts in portions that a page has room for: how many there are, and where the next portion begins."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final, Generic, TypeVar

T = TypeVar("T")
ROOM: Final = 20_000
"""Bytes of markup that one list of a page may fill."""
_MARK: Final = "…"


@dataclass(frozen=True, slots=True)
class Portion(Generic[T]):
    """Some items of a list: the first stands at `start` (from 0), `total` is how many there are in all."""

    items: Sequence[T]
    start: int
    total: int

    @property
    def following(self) -> int | None:
        """Where the next portion begins; None after the last."""
        end = self.start + len(self.items)
        return end if end < self.total else None

    @property
    def parted(self) -> bool:
        """Whether there is more than these."""
        return len(self.items) < self.total


def portion(
    items: Sequence[T], start: int | None, most: int, weigh: Callable[[T], int] | None = None, room: int = ROOM
) -> Portion[T]:
    """At most `most` items from `start` on, as many as `room` is enough for by their weights in bytes; one at least.

    A start that is none, or behind the last item, is the first one's.
    """
    begin = start if start is not None and start < len(items) else 0
    taken = list(items[begin : begin + most])
    if weigh is not None:
        left, count = room, 0
        for item in taken:
            left -= weigh(item)
            if left < 0 and count:
                break
            count += 1
        taken = taken[:count]
    return Portion(taken, begin, len(items))


def weight_of(text: str) -> int:
    """Bytes of a text in a page."""
    return len(escape(text).encode("utf-8", "replace"))


def shortened(text: str, room: int) -> str:
    """The text, or as much of its beginning as fits into so many bytes of a page, with an ellipsis behind it."""
    if len(text) * 6 <= room or (len(text) <= room and weight_of(text) <= room):
        return text
    kept = text[:room]
    while (over := weight_of(kept) - (room - len(_MARK.encode()))) > 0 and kept:
        kept = kept[: -max(1, over // 6)]
    return kept.rstrip() + _MARK


def piece_of(text: str, start: int | None, room: int = ROOM) -> Portion[str]:
    """A long text's piece from a character on, as one item; `following` of it is where the next one begins."""
    begin = start if start is not None and start < len(text) else 0
    end = min(len(text), begin + room)
    while end > begin + 1 and (over := weight_of(text[begin:end]) - room) > 0:
        end = max(begin + 1, end - max(1, over // 6))
    return TextPiece([text[begin:end]], begin, len(text))


class TextPiece(Portion[str]):
    """A portion whose items are characters of a text, held as one string."""

    __slots__ = ()

    @property
    def following(self) -> int | None:
        """The first character behind it; None at the end."""
        end = self.start + len(self.items[0])
        return end if end < self.total else None

    @property
    def parted(self) -> bool:
        """Whether it is not the whole text."""
        return len(self.items[0]) < self.total
