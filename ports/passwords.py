"""Hashing passwords so slowly that guessing them from the database does not pay."""

from typing import Protocol


class Passwords(Protocol):
    """Hashes; each call takes tens of milliseconds of a thread that nothing else waits for.

    Raises Overloaded when more wait already than can be served soon.
    """

    async def hash(self, password: str) -> str:
        """The password's encoded hash, with its salt and what it cost."""
        ...

    async def verify(self, encoded: str | None, password: str) -> bool:
        """Whether it is that password. None (there is none) takes as long, and is never."""
        ...

    def is_outdated(self, encoded: str) -> bool:
        """Whether it was hashed at another cost than is paid now."""
        ...
