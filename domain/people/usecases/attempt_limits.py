"""Rate limits of sign-in, which make guessing slow without locking out the user (OWASP: device cookies).

Browsers from which nobody has signed in to an account share one rate limit of that account. A browser from which the
user has signed in before has a separate limit, so that attackers cannot lock the user out. Each network address has a
limit too.
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
from domain.people.model import normalise_email
from domain.people.usecases.sessions import ClientInfo
from ports.limits import RateLimitBucket, RateLimits

DEVICE_COOKIE_LIFETIME = timedelta(days=180)
MAX_COOKIE_USERS = 4
"""Maximum number of users that a device cookie lists; a further user replaces the one with the oldest sign-in."""
_TRY_LATER = (
    "Too many attempts. Wait a few minutes. To sign in without waiting, use a passkey or reset your password by email."
)
_TOO_MANY_INVITATIONS = (
    "Too many invitations were sent to this address, by this organisation or by you. Try again later."
)
_HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class _AttemptRate:
    """Rate limit: `burst` attempts at once, and `per_hour` attempts each hour in the long run."""

    burst: int
    per_hour: int

    def build_rate_limit(self, key: str) -> RateLimitBucket:
        """Return the rate limit (token bucket) of the account, network address or session that `key` identifies."""
        return RateLimitBucket(f"people:{key}", self.burst, self.per_hour / _HOUR)


ADDRESS_RATE = _AttemptRate(30, 600)
"""Rate limit of sign-in attempts from one network address (IPv6: /64); enough for an office behind one address."""
UNKNOWN_DEVICES_RATE = _AttemptRate(10, 10)
"""Rate limit of sign-in attempts for one account from all browsers that its user has not signed in with before."""
DEVICE_RATE = _AttemptRate(10, 60)
"""Rate limit of sign-in attempts from one browser that the user has signed in with before."""
ADDRESS_LINK_RATE = _AttemptRate(10, 30)
"""Rate limit of requests for links by mail from one network address."""
ACCOUNT_LINK_RATE = _AttemptRate(3, 3)
"""Rate limit of links mailed to one account."""
REAUTHENTICATION_RATE = _AttemptRate(10, 60)
"""Rate limit of attempts to authenticate again within a session."""
PASSWORD_CHECK_RATE = _AttemptRate(20, 60)
"""Rate limit of checks of new passwords for one account; each takes a tenth of a second in a shared thread."""
PASSKEY_REGISTRATION_RATE = _AttemptRate(10, 20)
"""Rate limit of registrations of passkeys of one account."""
ADDRESS_INVITATION_RATE = _AttemptRate(3, 3)
"""Rate limit of invitations mailed to one address."""
ORGANISATION_INVITATION_RATE = _AttemptRate(30, 30)
"""Rate limit of invitations mailed for one organisation."""
INVITER_INVITATION_RATE = _AttemptRate(30, 30)
"""Rate limit of invitations mailed by one user."""


@dataclass(frozen=True, slots=True)
class DeviceCookies:
    """Signer and reader of device cookies, which list the users who have signed in with a browser.

    A device cookie grants no access.
    """

    access: AccessService

    def find_browser_id(self, cookie: str, normalised_email: str, now: datetime) -> str | None:
        """Return the random ID of the browser for this user; None if the user has not signed in with the browser.

        The result is also None if the user's entry in the cookie has expired at `now`.
        """
        for entry in cookie.split("~")[:MAX_COOKIE_USERS]:
            text, _, signature = entry.rpartition(".")
            fields = text.split(".")
            if len(fields) != 3 or not hmac.compare_digest(self._sign(text).encode(), signature.encode()):
                continue
            user_hash, nonce, expires = fields
            if user_hash == _hash_email(normalised_email) and int(expires) > now.timestamp():
                return nonce
        return None

    def add_user(self, cookie: str, normalised_email: str, now: datetime) -> str:
        """Return the device cookie with a new entry for the user, which contains a new random ID of the browser.

        The entry is valid for DEVICE_COOKIE_LIFETIME from `now`.
        """
        text = (
            f"{_hash_email(normalised_email)}.{secrets.token_hex(8)}.{int((now + DEVICE_COOKIE_LIFETIME).timestamp())}"
        )
        others = [
            entry for entry in cookie.split("~") if entry and not entry.startswith(f"{_hash_email(normalised_email)}.")
        ]
        return "~".join([f"{text}.{self._sign(text)}", *others][:MAX_COOKIE_USERS])

    def _sign(self, text: str) -> str:
        return self.access.compute_digest(f"joinery device\n{text}").hex()


@dataclass(frozen=True, slots=True)
class AttemptLimiter:
    """Counter of attempts against rate limits.

    All methods raise RateLimited, with the seconds to wait, if a limit is reached.
    """

    limits: RateLimits
    devices: DeviceCookies

    async def count_password_attempt(self, email: str, client: ClientInfo, device_cookie: str, now: datetime) -> None:
        """Count an attempt to sign in with a password; the email address need not have an account."""
        await self._count_attempt(ADDRESS_RATE.build_rate_limit(f"address:{find_counted_network(client.address)}"))
        nonce = self.devices.find_browser_id(device_cookie, normalise_email(email), now)
        await self._count_attempt(
            DEVICE_RATE.build_rate_limit(f"device:{nonce}")
            if nonce
            else UNKNOWN_DEVICES_RATE.build_rate_limit(f"unknown-devices:{_hash_email(normalise_email(email))}")
        )

    async def count_code_attempt(self, email: str, client: ClientInfo, device_cookie: str, now: datetime) -> None:
        """Count an attempt to complete a sign-in with a one-time code or recovery code."""
        await self._count_attempt(ADDRESS_RATE.build_rate_limit(f"address:{find_counted_network(client.address)}"))
        nonce = self.devices.find_browser_id(device_cookie, normalise_email(email), now)
        name = _hash_email(normalise_email(email))
        await self._count_attempt(
            DEVICE_RATE.build_rate_limit(f"codes:device:{nonce}")
            if nonce
            else UNKNOWN_DEVICES_RATE.build_rate_limit(f"codes:unknown-devices:{name}")
        )

    async def count_passkey_or_link_attempt(self, client: ClientInfo) -> None:
        """Count an attempt to use a passkey or a mailed link, for the network address only."""
        # No account is limited, because passkeys and links cannot be guessed.
        await self._count_attempt(ADDRESS_RATE.build_rate_limit(f"keys:{find_counted_network(client.address)}"))

    async def count_reauthentication(self, session: str) -> None:
        """Count an attempt of the signed-in user to authenticate again in the session with that ID."""
        await self._count_attempt(REAUTHENTICATION_RATE.build_rate_limit(f"proof:{session}"))

    async def count_password_check(self, email: str) -> None:
        """Count a check of a new password for the account with that email address."""
        await self._count_attempt(
            PASSWORD_CHECK_RATE.build_rate_limit(f"settings:{_hash_email(normalise_email(email))}")
        )

    async def count_passkey_registration(self, email: str) -> None:
        """Count a registration of a passkey for the account with that email address."""
        await self._count_attempt(
            PASSKEY_REGISTRATION_RATE.build_rate_limit(f"passkeys:{_hash_email(normalise_email(email))}")
        )

    async def count_invitation(self, email: str, org: str, inviter: str) -> None:
        """Count an invitation against the limits of the invited address, the organisation and the inviter."""
        # The smallest limit comes first, so that a refused invitation does not use up the others.
        for budget in (
            ADDRESS_INVITATION_RATE.build_rate_limit(f"invitations:{_hash_email(normalise_email(email))}"),
            ORGANISATION_INVITATION_RATE.build_rate_limit(f"invitations:org:{org}"),
            INVITER_INVITATION_RATE.build_rate_limit(f"invitations:by:{inviter}"),
        ):
            await self._count_attempt(budget, _TOO_MANY_INVITATIONS)

    async def count_link_request(self, email: str, client: ClientInfo) -> bool:
        """Count a request for a link by mail; return False if the account must not receive another link now.

        Raises RateLimited only if the network address has made too many requests.
        """
        await self._count_attempt(ADDRESS_LINK_RATE.build_rate_limit(f"links:{find_counted_network(client.address)}"))
        return (
            await self.limits.take_token(
                ACCOUNT_LINK_RATE.build_rate_limit(f"links:{_hash_email(normalise_email(email))}")
            )
        ).allowed

    async def _count_attempt(self, budget: RateLimitBucket, detail: str = _TRY_LATER) -> None:
        taken = await self.limits.take_token(budget)
        if not taken.allowed:
            raise RateLimited(detail, retry_after=max(1, math.ceil(taken.seconds_to_next)))


def _hash_email(email: str) -> str:
    """Return a hash of a normalised email address, for rate limits and cookies that must not contain the address."""
    return blake2b(email.encode("utf-8", "replace"), digest_size=10).hexdigest()


def find_counted_network(address: str) -> str:
    """Return the network whose attempts are counted together: an IPv4 address, or the /64 of an IPv6 address."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is None:
        return str(ipaddress.ip_network((found, 64), strict=False))
    return str(getattr(found, "ipv4_mapped", None) or found)
