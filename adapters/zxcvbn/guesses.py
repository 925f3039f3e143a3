"""How many guesses a password withstands, by zxcvbn: words and passwords by how often they are chosen, keys in a row, dates, repetitions, letters in disguise."""

import asyncio
from collections.abc import Sequence
from typing import Final

JUDGED: Final = 16
"""Characters that are looked at. What zxcvbn tries grows steeply with them: 16 take up to 30 ms, 32 up to a second."""
OWN: Final = (
    "joinery",
    "furniture",
    "catalogue",
    "catalog",
    "supplier",
    "vendor",
    "showroom",
    "furnituretrade",
    "interior",
)
"""Words of this service, which are tried here first."""


class ZxcvbnGuesses:
    """PasswordGuesses (ports/passwords.py)."""

    async def withstands(self, password: str, own: Sequence[str]) -> int:
        return await asyncio.to_thread(_guesses, password[:JUDGED], [*OWN, *own])


def _guesses(password: str, own: Sequence[str]) -> int:
    from zxcvbn import zxcvbn  # noqa: PLC0415  its lists take 0.2 s, and few processes ever ask

    return int(zxcvbn(password, user_inputs=list(own))["guesses"])
