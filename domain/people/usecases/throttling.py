"""How often somebody may try to sign in: guessing is slow, and nobody locks another person out (OWASP: device cookies).

Tries from browsers that have never been signed in to an account share one budget of that account; a browser that has been
has a budget of its own, so that whoever spends the first keeps out strangers alone. Each address has a budget as well.
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
"""Whom one browser is known for."""
_TRY_LATER = "There were too many tries. Wait a little, or get in by a passkey or by a link to your mail address: those always work."
_TOO_MANY_INVITATIONS = (
    "Too many invitations were sent to this address, by this organisation or by you; try again later."
)
_HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class _Rate:
    """So many at once, then so many an hour."""

    burst: int
    an_hour: int

    def of(self, key: str) -> Budget:
        """Return the budget with the key."""
        return Budget(f"people:{key}", self.burst, self.an_hour / _HOUR)


ADDRESS = _Rate(30, 600)
"""Of one address (IPv6: /64), for whatever account: an office behind one address signs in in the morning."""
STRANGERS = _Rate(10, 10)
DEVICE = _Rate(10, 60)
LINKS_OF_ADDRESS = _Rate(10, 30)
LINKS_OF_ACCOUNT = _Rate(3, 3)
PROOFS = _Rate(10, 60)
"""Proofs within a session."""
SETTINGS = _Rate(20, 60)
"""Passwords that are judged and hashed for one account: each takes a tenth of a second that others wait for."""


PASSKEYS = _Rate(10, 20)
"""Passkeys that one account registers: each answer is parsed and its key checked."""
INVITATIONS_OF_ADDRESS = _Rate(3, 3)
INVITATIONS_OF_ORGANISATION = _Rate(30, 30)
INVITATIONS_OF_INVITER = _Rate(30, 30)
"""Invitations that are mailed to one address, for one organisation, and by one person."""


@dataclass(frozen=True, slots=True)
class Devices:
    """Signed cookies that tell for whom a browser has been signed in before; they let nobody in."""

    access: AccessService

    def known(self, cookie: str, person: str, now: datetime) -> str | None:
        """Return the browser's identifier if it is known for the person (an ID, or an address key), or None."""
        for part in cookie.split("~")[:MOST_PEOPLE]:
            text, _, signature = part.rpartition(".")
            fields = text.split(".")
            if len(fields) != 3 or not hmac.compare_digest(self._signature(text).encode(), signature.encode()):
                continue
            whose, nonce, expires = fields
            if whose == _name(person) and int(expires) > now.timestamp():
                return nonce
        return None

    def remembered(self, cookie: str, person: str, now: datetime) -> str:
        """Return the device cookie extended by the person, with a new identifier."""
        text = f"{_name(person)}.{secrets.token_hex(8)}.{int((now + DEVICE_LASTS).timestamp())}"
        others = [part for part in cookie.split("~") if part and not part.startswith(f"{_name(person)}.")]
        return "~".join([f"{text}.{self._signature(text)}", *others][:MOST_PEOPLE])

    def _signature(self, text: str) -> str:
        return self.access.digest(f"joinery device\n{text}").hex()


@dataclass(frozen=True, slots=True)
class Throttle:
    """Takes of the budgets. Raises RateLimited with the seconds to wait."""

    limits: Limits
    devices: Devices

    async def password(self, email: str, visitor: Visitor, device: str, now: datetime) -> None:
        """Before a password is tried; the same for addresses that nobody has."""
        await self._take(ADDRESS.of(f"address:{network_of(visitor.address)}"))
        nonce = self.devices.known(device, email_key(email), now)
        await self._take(
            DEVICE.of(f"device:{nonce}") if nonce else STRANGERS.of(f"strangers:{_name(email_key(email))}")
        )

    async def code(self, email: str, visitor: Visitor, device: str, now: datetime) -> None:
        """Before a one-time or recovery code is tried by who has given the password."""
        await self._take(ADDRESS.of(f"address:{network_of(visitor.address)}"))
        nonce = self.devices.known(device, email_key(email), now)
        name = _name(email_key(email))
        await self._take(DEVICE.of(f"codes:device:{nonce}") if nonce else STRANGERS.of(f"codes:strangers:{name}"))

    async def visitor(self, visitor: Visitor) -> None:
        """Before a passkey or a link is tried: nothing to guess there, so that only the address counts."""
        await self._take(ADDRESS.of(f"keys:{network_of(visitor.address)}"))

    async def proof(self, session: str) -> None:
        """Before somebody who is signed in proves once more who they are."""
        await self._take(PROOFS.of(f"proof:{session}"))

    async def setting(self, email: str) -> None:
        """Before a password is judged that somebody sets for the account of that address, which they have shown to be theirs."""
        await self._take(SETTINGS.of(f"settings:{_name(email_key(email))}"))

    async def passkey(self, email: str) -> None:
        """Take one registration of a passkey from the budget of the account."""
        await self._take(PASSKEYS.of(f"passkeys:{_name(email_key(email))}"))

    async def invitation(self, email: str, org: str, inviter: str) -> None:
        """Take one invitation from each budget, the narrowest first, so that its refusal does not use up the wider ones."""
        for budget in (
            INVITATIONS_OF_ADDRESS.of(f"invitations:{_name(email_key(email))}"),
            INVITATIONS_OF_ORGANISATION.of(f"invitations:org:{org}"),
            INVITATIONS_OF_INVITER.of(f"invitations:by:{inviter}"),
        ):
            await self._take(budget, _TOO_MANY_INVITATIONS)

    async def link(self, email: str, visitor: Visitor) -> bool:
        """Before a link is mailed: whether it may be. Raises RateLimited for the address it is asked from alone."""
        await self._take(LINKS_OF_ADDRESS.of(f"links:{network_of(visitor.address)}"))
        return (await self.limits.take(LINKS_OF_ACCOUNT.of(f"links:{_name(email_key(email))}"))).allowed

    async def _take(self, budget: Budget, detail: str = _TRY_LATER) -> None:
        taken = await self.limits.take(budget)
        if not taken.allowed:
            raise RateLimited(detail, retry_after=max(1, math.ceil(taken.next_in)))


def _name(person: str) -> str:
    """Return the digest that represents a person in names of budgets and cookies."""
    return blake2b(person.encode("utf-8", "replace"), digest_size=10).hexdigest()


def network_of(address: str) -> str:
    """Return the address that is counted: of IPv6 the /64 network."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is None:
        return str(ipaddress.ip_network((found, 64), strict=False))
    return str(getattr(found, "ipv4_mapped", None) or found)
