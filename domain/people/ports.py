"""Ports of authentication: storage of users, sessions, links and factors for all tenants.

Other ports verify passwords, one-time codes and passkeys.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from domain.access.model import Credential, Principal
from domain.people.factors import Authenticator, Passkey
from domain.people.model import AuthMethod, LinkPurpose, OneTimeLink, SecurityEvent, Session, SignedIn, User


class People(Protocol):
    """Storage of users and their security events; each call is its own transaction."""

    async def get(self, id: str) -> User | None:
        """Return the user with that ID, or None."""
        ...

    async def get_many(self, ids: Collection[str]) -> Mapping[str, User]:
        """Return the users by ID; unknown IDs are omitted."""
        ...

    async def find_by_email(self, email: str) -> User | None:
        """Return the user with that email address, ignoring case, or None."""
        ...

    async def add(self, user: User) -> User:
        """Store a new user, unless the email address is taken; return the user who has the address."""
        ...

    async def add_with_password(self, user: User, password_hash: str, now: datetime) -> bool:
        """Store a new user and the encoded hash of the user's password atomically.

        Returns False, and stores nothing, if the email address is taken.
        """
        ...

    async def save(self, user: User) -> None:
        """Store the changed name, language or verification time of a user."""
        ...

    async def get_password_hash(self, user: str) -> str | None:
        """Return the user's encoded password hash, or None."""
        ...

    async def set_password_hash(self, user: str, password_hash: str, now: datetime) -> None:
        """Replace the user's encoded password hash."""
        ...

    async def record_event(self, event: SecurityEvent) -> None:
        """Store a security event of a user."""
        ...

    async def list_events(self, user: str, limit: int) -> Sequence[SecurityEvent]:
        """Return the user's newest security events, newest first."""
        ...

    async def delete_events(self, before: datetime) -> int:
        """Delete security events older than `before`; return their number."""
        ...


class Sessions(Protocol):
    """Storage of console sessions and of users' tokens for scripts; each call is its own transaction."""

    async def add(self, session: Session) -> None:
        """Store a new session."""
        ...

    async def find(self, digest: bytes) -> SignedIn | None:
        """Return the session whose secret has that keyed hash, with its user and principal, or None.

        Expired and revoked sessions are returned as well.
        """
        ...

    async def list_by_user(self, user: str) -> Sequence[Session]:
        """Return the user's sessions that are not revoked, newest first."""
        ...

    async def save(self, session: Session) -> None:
        """Store the changed organisation, mode, methods and authentication time of a session."""
        ...

    async def record_use(self, id: str, now: datetime) -> None:
        """Store `now` as the time of the session's last use.

        Other fields remain unchanged, because another request may change the session's organisation at the same time.
        """
        ...

    async def revoke(self, ids: Collection[str], now: datetime) -> int:
        """Revoke sessions; return how many were not revoked before."""
        ...

    async def find_tokens(self, digests: Collection[bytes]) -> Mapping[bytes, tuple[Credential, Principal]]:
        """Return the tokens for scripts with those keyed hashes, and their principals.

        This is the method of domain.access.ports.TokenLookup for these tokens.
        """
        ...

    async def delete_ended(self, before: datetime) -> int:
        """Delete sessions and one-time links that ended before `before`; return their number."""
        ...


class SignInRules(Protocol):
    """Rules of organisations about the methods by which their members must sign in."""

    async def allows(self, user: str, org: str, methods: Collection[AuthMethod]) -> bool:
        """Return whether a member who signed in with `methods` may open the organisation."""
        ...

    async def record_bypass(self, user: str, org: str, methods: Collection[AuthMethod]) -> None:
        """Add an audit entry if the organisation enforces single sign-on for the member and `methods` lacks it."""
        ...


class OneTimeLinks(Protocol):
    """Storage of one-time links."""

    async def add(self, link: OneTimeLink) -> None:
        """Store a new link; earlier links of the same user and purpose become invalid."""
        ...

    async def invalidate_unused(self, user: str) -> None:
        """Invalidate all links of the user that were not used yet."""
        ...

    async def find(self, digest: bytes, purpose: LinkPurpose, now: datetime) -> OneTimeLink | None:
        """Return the link whose secret has that keyed hash if it can still be used, or None."""
        ...

    async def use(self, digest: bytes, purpose: LinkPurpose, now: datetime) -> OneTimeLink | None:
        """Mark the link whose secret has that keyed hash as used and return it; None if it cannot be used."""
        ...


class Factors(Protocol):
    """Storage of users' authenticators (apps with one-time codes) and recovery codes."""

    async def find_authenticator(self, user: str) -> Authenticator | None:
        """Return the user's authenticator, confirmed or not, or None."""
        ...

    async def enrol(self, authenticator: Authenticator) -> Authenticator:
        """Store an unconfirmed authenticator, unless the user has one.

        Return the stored authenticator, confirmed or not.
        """
        ...

    async def confirm(self, authenticator: Authenticator, step: int, digests: Sequence[bytes], now: datetime) -> bool:
        """Confirm the authenticator and replace the user's recovery codes.

        Returns False, and stores nothing, if the authenticator was confirmed or replaced by another call.

        Args:
            authenticator: The unconfirmed authenticator.
            step: The time step of the code that the user entered.
            digests: Keyed hashes of the new recovery codes.
            now: The time of the confirmation.
        """
        ...

    async def use_totp_step(self, user: str, step: int) -> bool:
        """Mark a time step of one-time codes as used; return False if that step or a later one was already used."""
        ...

    async def disenrol(self, user: str) -> bool:
        """Delete the user's authenticator and recovery codes; return False if there was no authenticator."""
        ...

    async def replace_codes(self, user: str, digests: Sequence[bytes]) -> bool:
        """Replace the user's recovery codes by the ones with the keyed hashes `digests`.

        Returns False, and stores nothing, if the user has no confirmed authenticator.
        """
        ...

    async def use_code(self, user: str, digest: bytes, now: datetime) -> bool:
        """Mark the recovery code with that keyed hash as used; return False if it is unknown or was used before."""
        ...

    async def count_unused_codes(self, user: str) -> int:
        """Return the number of the user's recovery codes that are not used yet."""
        ...


class Passkeys(Protocol):
    """Storage of passkeys and of WebAuthn challenges."""

    async def add(self, passkey: Passkey) -> bool:
        """Store a new passkey; return False if a passkey with the same credential ID is stored."""
        ...

    async def list_by_user(self, user: str) -> Sequence[Passkey]:
        """Return the user's passkeys, oldest first."""
        ...

    async def find(self, credential: bytes) -> Passkey | None:
        """Return the passkey with the credential ID `credential`, or None."""
        ...

    async def record_signature(self, passkey: Passkey, sign_count: int, now: datetime) -> bool:
        """Store the signature count of a passkey that was used, and the time.

        Returns False if the count did not increase, which suggests a copy of the passkey. Devices that always report
        zero are accepted.
        """
        ...

    async def rename(self, user: str, id: str, name: str) -> bool:
        """Rename a passkey; return False if the user has no such passkey."""
        ...

    async def remove(self, user: str, id: str) -> bool:
        """Delete a passkey; return False if the user has no such passkey."""
        ...

    async def add_challenge(self, digest: bytes, user: str | None, expires_at: datetime) -> None:
        """Store the keyed hash of a challenge; `user` is the user who must respond, or None for any user."""
        ...

    async def use_challenge(self, digest: bytes, user: str | None, now: datetime) -> bool:
        """Mark a challenge as used; return False if it is unknown, used, expired, or for another user."""
        ...

    async def delete_challenges(self, before: datetime) -> int:
        """Delete challenges that expired before `before`; return their number."""
        ...


@dataclass(frozen=True, slots=True)
class RegisteredCredential:
    """Credential in a verified registration response.

    Attributes:
        credential_id: The credential ID.
        public_key: The public key in COSE format.
        sign_count: Number of signatures that the device has reported.
        backed_up: Whether the device copies the credential to a backup.
    """

    credential_id: bytes
    public_key: bytes
    sign_count: int
    backed_up: bool


class PasskeyRefused(Exception):
    """The browser's response about a passkey is invalid; the reason is for the log only."""


class PasskeyCeremonies(Protocol):
    """WebAuthn registration and sign-in for the console; the device verifies its user by PIN, finger or face."""

    def build_registration_options(self, user: User, existing: Sequence[Passkey], challenge: bytes) -> str:
        """Return the options for `navigator.credentials.create` in the browser, as JSON.

        `existing` are the user's passkeys. A device that has one of these refuses to create another.
        """
        ...

    def verify_registration(self, response: str, challenge: bytes) -> RegisteredCredential:
        """Verify the browser's response to a registration; return the new credential. Raises PasskeyRefused."""
        ...

    def build_sign_in_options(self, challenge: bytes, permitted: Sequence[Passkey] = ()) -> str:
        """Return the options for `navigator.credentials.get` in the browser, as JSON.

        `permitted` are the passkeys that are accepted; empty for any.
        """
        ...

    def parse_credential_id(self, response: str) -> bytes:
        """Return the credential ID in the browser's response, without verifying the response. Raises PasskeyRefused."""
        ...

    def verify_signature(self, response: str, challenge: bytes, passkey: Passkey) -> int:
        """Verify the signature in the browser's response; return the device's signature count.

        Raises PasskeyRefused.
        """
        ...


@dataclass(frozen=True, slots=True)
class Enrolment:
    """Data for setting up an authenticator app: `secret`, to enter by hand, and `qr_code`, a QR code as SVG."""

    secret: str
    qr_code: str


class OneTimeCodes(Protocol):
    """Time-based one-time codes (TOTP) as all authenticator apps support them: SHA-1, six digits, 30 seconds."""

    def create_secret(self) -> str:
        """Return a new random secret of 160 bits, in base32."""
        ...

    def build_enrolment(self, secret: str, account: str) -> Enrolment:
        """Return the data for setting up an authenticator app; `account` is the account name that the app displays."""
        ...

    def find_time_step(self, secret: str, code: str, now: datetime) -> int | None:
        """Return the time step of a one-time code: the current, previous or next one; None if the code is wrong."""
        ...


class PasswordHasher(Protocol):
    """Password hashing in separate threads; each call takes tens of milliseconds.

    Both coroutines raise Overloaded if too many calls wait.
    """

    async def hash(self, password: str) -> str:
        """Return the encoded hash of the password, with its salt and cost."""
        ...

    async def verify(self, password_hash: str | None, password: str) -> bool:
        """Return whether the password matches the encoded hash.

        A missing hash (None) never matches, but takes the same time.
        """
        ...

    def is_outdated(self, password_hash: str) -> bool:
        """Return whether the hash was computed with a cost that differs from the configured one."""
        ...


class GuessEstimator(Protocol):
    """Estimator of how hard a password is to guess. Raises Overloaded if too many calls wait."""

    async def estimate_guesses(self, password: str, personal_words: Sequence[str]) -> int:
        """Estimate how many guesses an attacker needs to find the password.

        `personal_words` are words of the user's name and email address, which an attacker tries first.
        """
        ...
