"""One-time codes of an app (RFC 6238): its secret, how the app is given it, and which step a code belongs to."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Enrolment:
    """What an app is given: `secret` to type, and `picture`, a QR code as SVG."""

    secret: str
    picture: str


class OneTimeCodes(Protocol):
    """SHA-1, six digits, 30 seconds, as every app has it."""

    def secret(self) -> str:
        """A new secret: base32, 160 bits."""
        ...

    def enrolment(self, secret: str, account: str) -> Enrolment:
        """How an app is given the secret, which shows it as that account's."""
        ...

    def step(self, secret: str, code: str, now: datetime) -> int | None:
        """The step whose code it is, of now and one before or after; None when it is no such code."""
        ...
