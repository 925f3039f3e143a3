"""Factors beside passwords: one-time codes, recovery codes and passkeys."""

from dataclasses import dataclass
from datetime import datetime, timedelta

RECOVERY_CODES = 10
CODE_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"
"""Without characters that are easily confused."""
CODE_LENGTH = 10
CHALLENGE_LASTS = timedelta(minutes=5)
MOST_PASSKEYS = 20
LONGEST_PASSKEY_NAME = 60


@dataclass(frozen=True, slots=True)
class Authenticator:
    """An app for one-time codes (RFC 6238).

    `sealed` is the shared secret, `last_step` the last step used. `confirmed_at` is None until a first code was
    entered.
    """

    user: str
    sealed: bytes
    confirmed_at: datetime | None
    last_step: int = 0


@dataclass(frozen=True, slots=True)
class Passkey:
    """A passkey (WebAuthn level 3).

    `public_key` is in COSE format; `sign_count` is the device's last count, 0 for devices that do not count.
    """

    id: str
    user: str
    credential: bytes
    public_key: bytes
    sign_count: int
    name: str
    backed_up: bool
    created_at: datetime
    used_at: datetime | None = None


def shown_code(text: str) -> str:
    """Format a recovery code in two halves."""
    return f"{text[: CODE_LENGTH // 2]}-{text[CODE_LENGTH // 2 :]}"


def typed_code(text: str) -> str:
    """Return a typed code in the form for comparison."""
    return "".join(char for char in text.casefold() if char.isalnum())
