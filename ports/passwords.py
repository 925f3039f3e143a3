"""Passwords: hashed so slowly that guessing them from the database does not pay, and judged by how soon they would be guessed."""

from collections.abc import Sequence
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


class PasswordGuesses(Protocol):
    """Judges passwords. Raises Overloaded when more wait already than can be judged soon."""

    async def withstands(self, password: str, own: Sequence[str]) -> int:
        """How many guesses a password withstands when what is chosen most is tried first; `own` are words of its person, tried first of all."""
        ...
