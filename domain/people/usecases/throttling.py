"""Limits of sign-in attempts: guessing is slow, and nobody locks another person out (OWASP: device cookies).

Attempts from browsers that never signed in to an account share one budget per account. A known browser has its own, so
that a spent shared budget affects unknown browsers only. Each address has a budget as well.
"""

import hmac
import ipaddress
import math
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import blake2b

from domain.access.usecases import AccessService
from domain.kernel.errors import RateLimited
from domain.people.model import email_key
from domain.people.usecases.sessions import Visitor
from ports.limits import Budget, Limits

DEVICE_LASTS = timedelta(days=180)
MOST_PEOPLE = 4
"""Maximum people per device cookie."""
_TRY_LATER = "Too many attempts. Wait a little, or sign in with a passkey or a link to your mail address."
_TOO_MANY_INVITATIONS = (
    "Too many invitations were sent to this address, by this organisation or by you; try again later."
)
_HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class _Rate:
    """A rate: a burst, and a number per hour."""

    burst: int
    an_hour: int

    def of(self, key: str) -> Budget:
        """Return the budget of that name."""
        return Budget(f"people:{key}", self.burst, self.an_hour / _HOUR)


ADDRESS = _Rate(30, 600)
"""Rate of one address (IPv6: /64) for all accounts, sufficient for an office behind one address."""
UNKNOWN_DEVICES = _Rate(10, 10)
DEVICE = _Rate(10, 60)
LINKS_OF_ADDRESS = _Rate(10, 30)
LINKS_OF_ACCOUNT = _Rate(3, 3)
PROOFS = _Rate(10, 60)
"""Proofs within a session."""
SETTINGS = _Rate(20, 60)
"""Passwords that are checked and hashed for one account, each in a tenth of a second of a shared thread."""


PASSKEYS = _Rate(10, 20)
"""Registrations of passkeys of one account, each of which is parsed and verified."""
INVITATIONS_OF_ADDRESS = _Rate(3, 3)
INVITATIONS_OF_ORGANISATION = _Rate(30, 30)
INVITATIONS_OF_INVITER = _Rate(30, 30)
"""Invitations that are mailed to one address, for one organisation, and by one person."""


@dataclass(frozen=True, slots=True)
class Devices:
    """Signed device cookies that identify people who have signed in with a browser before; they grant no access."""

    access: AccessService

    def known(self, cookie: str, person: str, now: datetime) -> str | None:
        """Return the browser's nonce if it is known for that person (an id, or an address's key), or None."""
        for part in cookie.split("~")[:MOST_PEOPLE]:
            text, _, signature = part.rpartition(".")
            fields = text.split(".")
            if len(fields) != 3 or not hmac.compare_digest(self._signature(text).encode(), signature.encode()):
                continue
            whose, nonce, expires = fields
            if whose == _pseudonym(person) and int(expires) > now.timestamp():
                return nonce
        return None

    def remembered(self, cookie: str, person: str, now: datetime) -> str:
        """Return the cookie extended by that person with a new nonce."""
        text = f"{_pseudonym(person)}.{secrets.token_hex(8)}.{int((now + DEVICE_LASTS).timestamp())}"
        others = [part for part in cookie.split("~") if part and not part.startswith(f"{_pseudonym(person)}.")]
        return "~".join([f"{text}.{self._signature(text)}", *others][:MOST_PEOPLE])

    def _signature(self, text: str) -> str:
        return self.access.digest(f"joinery device\n{text}").hex()


@dataclass(frozen=True, slots=True)
class Throttle:
    """Rate limits of sign-in. All methods raise RateLimited with the seconds to wait."""

    limits: Limits
    devices: Devices

    async def password(self, email: str, visitor: Visitor, device: str, now: datetime) -> None:
        """Count an attempt with a password, also for addresses without an account."""
        await self._take(ADDRESS.of(f"address:{network_of(visitor.address)}"))
        nonce = self.devices.known(device, email_key(email), now)
        await self._take(
            DEVICE.of(f"device:{nonce}") if nonce else UNKNOWN_DEVICES.of(f"strangers:{_pseudonym(email_key(email))}")
        )

    async def code(self, email: str, visitor: Visitor, device: str, now: datetime) -> None:
        """Count an attempt with a one-time or recovery code after the password."""
        await self._take(ADDRESS.of(f"address:{network_of(visitor.address)}"))
        nonce = self.devices.known(device, email_key(email), now)
        name = _pseudonym(email_key(email))
        await self._take(DEVICE.of(f"codes:device:{nonce}") if nonce else UNKNOWN_DEVICES.of(f"codes:strangers:{name}"))

    async def visitor(self, visitor: Visitor) -> None:
        """Count an attempt with a passkey or link, which cannot be guessed, by address only."""
        await self._take(ADDRESS.of(f"keys:{network_of(visitor.address)}"))

    async def proof(self, session: str) -> None:
        """Count a renewed authentication in a session."""
        await self._take(PROOFS.of(f"proof:{session}"))

    async def setting(self, email: str) -> None:
        """Count a check of a new password for the account with that address."""
        await self._take(SETTINGS.of(f"settings:{_pseudonym(email_key(email))}"))

    async def passkey(self, email: str) -> None:
        """Take one registration of a passkey from the budget of the account."""
        await self._take(PASSKEYS.of(f"passkeys:{_pseudonym(email_key(email))}"))

    async def invitation(self, email: str, org: str, inviter: str) -> None:
        """Take one invitation from each budget, the narrowest first, so that its refusal does not use up the wider ones."""
        for budget in (
            INVITATIONS_OF_ADDRESS.of(f"invitations:{_pseudonym(email_key(email))}"),
            INVITATIONS_OF_ORGANISATION.of(f"invitations:org:{org}"),
            INVITATIONS_OF_INVITER.of(f"invitations:by:{inviter}"),
        ):
            await self._take(budget, _TOO_MANY_INVITATIONS)

    async def link(self, email: str, visitor: Visitor) -> bool:
        """Count a mailed link; return whether it may be sent. Raises RateLimited for the requesting address only."""
        await self._take(LINKS_OF_ADDRESS.of(f"links:{network_of(visitor.address)}"))
        return (await self.limits.take(LINKS_OF_ACCOUNT.of(f"links:{_pseudonym(email_key(email))}"))).allowed

    async def _take(self, budget: Budget, detail: str = _TRY_LATER) -> None:
        taken = await self.limits.take(budget)
        if not taken.allowed:
            raise RateLimited(detail, retry_after=max(1, math.ceil(taken.next_in)))


def _pseudonym(person: str) -> str:
    """Return a hash of the person for budgets and cookies, which hides the address."""
    return blake2b(person.encode("utf-8", "replace"), digest_size=10).hexdigest()


def network_of(address: str) -> str:
    """Return the address for counting; for IPv6 the network of one customer."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is None:
        return str(ipaddress.ip_network((found, 64), strict=False))
    return str(getattr(found, "ipv4_mapped", None) or found)
