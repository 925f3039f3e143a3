"""What somebody proves who they are with, beside a password: one-time codes, recovery codes, passkeys."""

from dataclasses import dataclass
from datetime import datetime, timedelta

RECOVERY_CODES = 10
CODE_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"
"""Without those that are taken for another."""
CODE_LENGTH = 10
CHALLENGE_LASTS = timedelta(minutes=5)
MOST_PASSKEYS = 20
LONGEST_PASSKEY_NAME = 60


@dataclass(frozen=True, slots=True)
class Authenticator:
    """An app that shows one-time codes (RFC 6238). `sealed` is the shared secret; `last_step` the last one that was taken.

    `confirmed_at` is None until a first code has shown that the app has the secret.
    """

    user: str
    sealed: bytes
    confirmed_at: datetime | None
    last_step: int = 0


@dataclass(frozen=True, slots=True)
class Passkey:
    """A key pair whose private half stays with a person's device (WebAuthn level 3). `public_key` is COSE, as it came.

    `sign_count` is what the device said last, 0 for those that do not count.
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
    """Return a recovery code as it is displayed, in two halves."""
    return f"{text[: CODE_LENGTH // 2]}-{text[CODE_LENGTH // 2 :]}"


def typed_code(text: str) -> str:
    """Return a code in the form in which it is compared."""
    return "".join(char for char in text.casefold() if char.isalnum())
