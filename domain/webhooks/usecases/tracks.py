"""How far an endpoint has come in one log."""

from collections.abc import Iterable
from heapq import heappop, heappush

from domain.events.model import LogPosition


class Lowest:
    """The lowest of a set of positions that come and go."""

    def __init__(self) -> None:
        self._heap: list[int] = []
        self._present: set[int] = set()

    def add(self, position: int) -> None:
        """One comes."""
        if position not in self._present:
            self._present.add(position)
            heappush(self._heap, position)

    def discard(self, positions: Iterable[int]) -> None:
        """Some go."""
        self._present.difference_update(positions)

    def value(self) -> int | None:
        """The lowest of them, None for none."""
        while self._heap and self._heap[0] not in self._present:
            heappop(self._heap)
        return self._heap[0] if self._heap else None


class Track:
    """How far one log was taken in, and what of it is on its way."""

    def __init__(self, position: LogPosition) -> None:
        self.taken = position
        self.open, self.unrecorded = Lowest(), Lowest()

    def add(self, position: int) -> None:
        """An event there has become part of a delivery."""
        self.open.add(position)
        self.unrecorded.add(position)

    def before(self, lowest: int | None) -> LogPosition:
        """Right before that position, or how far everything was taken in."""
        if lowest is None or lowest > self.taken.position:
            # of what is on its way since before the log went back, nothing counts
            return self.taken
        return self.taken.at(lowest - 1)
