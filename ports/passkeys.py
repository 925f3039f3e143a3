"""The ceremonies of WebAuthn: what a browser is asked, and whether its answer holds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from domain.people.factors import Passkey
from domain.people.model import User


@dataclass(frozen=True, slots=True)
class Registration:
    """What a registration brought: the credential's id, its public key (COSE), what it counts, whether it is backed up."""

    credential: bytes
    public_key: bytes
    sign_count: int
    backed_up: bool


class PasskeyRefused(Exception):
    """The browser's answer does not hold; the reason is for the log, not for people."""


class Ceremonies(Protocol):
    """For the one origin that the console has. Who uses a passkey is verified by its device (PIN, finger, face)."""

    def registration(self, user: User, known: Sequence[Passkey], challenge: bytes) -> str:
        """What `navigator.credentials.create` is given, as JSON; devices with a `known` one refuse."""
        ...

    def registered(self, answer: str, challenge: bytes) -> Registration:
        """What came of it. Raises PasskeyRefused."""
        ...

    def sign_in(self, challenge: bytes, known: Sequence[Passkey] = ()) -> str:
        """What `navigator.credentials.get` is given, as JSON: any passkey, or one of the `known`."""
        ...

    def credential(self, answer: str) -> bytes:
        """The id of the credential that answered; nothing is proved yet. Raises PasskeyRefused."""
        ...

    def signed(self, answer: str, challenge: bytes, passkey: Passkey) -> int:
        """The new count of a signature by that passkey. Raises PasskeyRefused."""
        ...
