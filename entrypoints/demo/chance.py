"""Choices that look like chance and are the same at every start: each follows from its own words alone."""

from collections.abc import Sequence
from hashlib import blake2b
from typing import TypeVar

T = TypeVar("T")


def number(below: int, *words: object) -> int:
    """A number from 0 to below `below`."""
    digest = blake2b("|".join(map(str, words)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % below


def one_of(options: Sequence[T], *words: object) -> T:
    """One of the options."""
    return options[number(len(options), *words)]


def some_of(options: Sequence[T], count: int, *words: object) -> list[T]:
    """`count` different options in their own order."""
    ranked = sorted(range(len(options)), key=lambda at: number(1 << 40, *words, at))
    return [options[at] for at in sorted(ranked[:count])]


def happens(percent: int, *words: object) -> bool:
    """Whether something happens that happens in so many of a hundred cases."""
    return number(100, *words) < percent
