"""Authentication factors other than passwords: one-time codes, recovery codes and passkeys."""

from dataclasses import dataclass
from datetime import datetime, timedelta

RECOVERY_CODE_COUNT = 10
"""Number of recovery codes of a user."""
RECOVERY_CODE_CHARS = "abcdefghjkmnpqrstuvwxyz23456789"
"""Characters of recovery codes, without those that are easily confused."""
RECOVERY_CODE_LENGTH = 10
CHALLENGE_LIFETIME = timedelta(minutes=5)
"""Time in which a browser must respond to a passkey challenge."""
MAX_PASSKEYS = 20
MAX_PASSKEY_NAME_CHARS = 60


@dataclass(frozen=True, slots=True)
class Authenticator:
    """Authenticator app of a user, which shows one-time codes (RFC 6238).

    Attributes:
        sealed: The encrypted secret that the app shares with the service.
        confirmed_at: When the user entered a first code from the app; None before.
        last_step: The 30-second time step of the last used code; codes of this or an earlier step are refused.
    """

    user: str
    sealed: bytes
    confirmed_at: datetime | None
    last_step: int = 0


@dataclass(frozen=True, slots=True)
class Passkey:
    """Passkey (WebAuthn level 3).

    Attributes:
        credential: The credential ID (WebAuthn) that the device assigned.
        public_key: The public key in COSE format.
        sign_count: Number of signatures that the device has reported; 0 for devices that do not count.
        name: The name that the user chose.
        backed_up: Whether the device copies the passkey to a backup.
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


def format_recovery_code(text: str) -> str:
    """Format a recovery code as two halves with a hyphen between them."""
    return f"{text[: RECOVERY_CODE_LENGTH // 2]}-{text[RECOVERY_CODE_LENGTH // 2 :]}"


def normalise_code(text: str) -> str:
    """Return an entered one-time code or recovery code in lower case, reduced to letters and digits."""
    return "".join(char for char in text.casefold() if char.isalnum())
