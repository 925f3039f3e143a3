"""Storage of people, sessions, links and factors, which belong to no tenant."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from domain.access.model import Credential, Principal
from domain.people.factors import Authenticator, Passkey
from domain.people.model import Method, OneTimeLink, Purpose, SecurityEvent, Session, SignedIn, User


class People(Protocol):
    """People and their security events; each call is its own transaction."""

    async def get(self, id: str) -> User | None:
        """Return the user with that id, or None."""
        ...

    async def several(self, ids: Collection[str]) -> Mapping[str, User]:
        """Return the users by id; unknown ids are omitted."""
        ...

    async def by_email(self, email: str) -> User | None:
        """Return the user with that address, ignoring case, or None."""
        ...

    async def add(self, user: User) -> User:
        """Store a new user; return the existing one if the address is taken."""
        ...

    async def set_up(self, user: User, encoded: str, now: datetime) -> bool:
        """Store a new user and their password hash atomically.

        Returns False, with nothing stored, if the address is taken.
        """
        ...

    async def change(self, user: User) -> None:
        """Store a changed name or verification."""
        ...

    async def password(self, user: str) -> str | None:
        """Return the encoded password hash, or None."""
        ...

    async def set_password(self, user: str, encoded: str, now: datetime) -> None:
        """Store another password hash."""
        ...

    async def note(self, event: SecurityEvent) -> None:
        """Store a security event."""
        ...

    async def events(self, user: str, limit: int) -> Sequence[SecurityEvent]:
        """Return the person's newest security events first."""
        ...

    async def forget_events(self, before: datetime) -> int:
        """Delete events older than that; return their number."""
        ...


class Sessions(Protocol):
    """Sessions of console and tokens; each call is its own transaction."""

    async def add(self, session: Session) -> None:
        """Store a new session."""
        ...

    async def find(self, digest: bytes) -> SignedIn | None:
        """Return the session with that keyed hash, its person and their present permissions, also when it has ended."""
        ...

    async def of_user(self, user: str) -> Sequence[Session]:
        """Return the user's sessions that were not revoked, newest first."""
        ...

    async def save(self, session: Session) -> None:
        """Store the session's view and authentication."""
        ...

    async def seen(self, id: str, now: datetime) -> None:
        """Store the last use only, because the view may change concurrently."""
        ...

    async def revoke(self, ids: Collection[str], now: datetime) -> int:
        """Revoke sessions; return how many were not revoked yet."""
        ...

    async def proofs(self, digests: Collection[bytes]) -> Mapping[bytes, tuple[Credential, Principal]]:
        """Return the tokens with those keyed hashes (domain/access/ports.py:TokenProofs), without console sessions."""
        ...

    async def forget(self, before: datetime) -> int:
        """Delete sessions and links that ended before then; return their number."""
        ...


class SignInRules(Protocol):
    """Requirements of organisations on how their members sign in."""

    async def allows(self, user: str, org: str, methods: Collection[Method]) -> bool:
        """Return whether a member who authenticated by `methods` may open the organisation."""
        ...

    async def note(self, user: str, org: str, methods: Collection[Method]) -> None:
        """Record an admission that must be audited."""
        ...


class OneTimeLinks(Protocol):
    """Storage of one-time links."""

    async def add(self, link: OneTimeLink) -> None:
        """Store a new link, which invalidates older ones of the same person and purpose."""
        ...

    async def withdraw(self, user: str) -> None:
        """Invalidate all unused links of the person."""
        ...

    async def find(self, digest: bytes, purpose: Purpose, now: datetime) -> OneTimeLink | None:
        """Return the link if it can be used."""
        ...

    async def use(self, digest: bytes, purpose: Purpose, now: datetime) -> OneTimeLink | None:
        """Use the link atomically and return it; None if it is used or expired."""
        ...


class Factors(Protocol):
    """Storage of each person's authenticator and recovery codes."""

    async def authenticator(self, user: str) -> Authenticator | None:
        """Return the person's authenticator, confirmed or not."""
        ...

    async def enrol(self, authenticator: Authenticator) -> Authenticator:
        """Store an unconfirmed authenticator unless there is one; return the person's, confirmed or not."""
        ...

    async def confirm(self, authenticator: Authenticator, step: int, digests: Sequence[bytes], now: datetime) -> bool:
        """Confirm the authenticator and replace the recovery codes' keyed hashes.

        Returns False, with nothing stored, if another call was faster or the authenticator was replaced.
        """
        ...

    async def take_step(self, user: str, step: int) -> bool:
        """Use a step; return False if it, or a later one, was used."""
        ...

    async def disenrol(self, user: str) -> bool:
        """Delete authenticator and recovery codes; return False if there was none."""
        ...

    async def replace_codes(self, user: str, digests: Sequence[bytes]) -> bool:
        """Replace the recovery codes' keyed hashes.

        Returns False, with nothing stored, if no authenticator is confirmed.
        """
        ...

    async def use_code(self, user: str, digest: bytes, now: datetime) -> bool:
        """Use a recovery code; return False if it is unknown or used."""
        ...

    async def codes_left(self, user: str) -> int:
        """Return the number of unused recovery codes."""
        ...


class Passkeys(Protocol):
    """Storage of passkeys and challenges."""

    async def add(self, passkey: Passkey) -> bool:
        """Store a new passkey; return False if the credential is known."""
        ...

    async def of_user(self, user: str) -> Sequence[Passkey]:
        """Return the user's passkeys, oldest first."""
        ...

    async def find(self, credential: bytes) -> Passkey | None:
        """Return the passkey with that credential, or None."""
        ...

    async def used(self, passkey: Passkey, sign_count: int, now: datetime) -> bool:
        """Record a signature.

        Returns False if the count does not rise (a copy may exist), unless the device does not count.
        """
        ...

    async def rename(self, user: str, id: str, name: str) -> bool:
        """Rename a passkey; return False if it is not that person's."""
        ...

    async def remove(self, user: str, id: str) -> bool:
        """Delete a passkey; return False if it is not that person's."""
        ...

    async def challenge(self, digest: bytes, user: str | None, expires_at: datetime) -> None:
        """Store a challenge's keyed hash; `user` is the person expected to answer, if known."""
        ...

    async def take_challenge(self, digest: bytes, user: str | None, now: datetime) -> bool:
        """Use a challenge; return False if it is not that person's, used or expired."""
        ...

    async def forget_challenges(self, before: datetime) -> int:
        """Delete challenges that expired before then; return their number."""
        ...


@dataclass(frozen=True, slots=True)
class Registration:
    """A new credential: id, public key (COSE), signature count, and whether it is backed up."""

    credential: bytes
    public_key: bytes
    sign_count: int
    backed_up: bool


class PasskeyRefused(Exception):
    """The browser's response is invalid; the reason is for the log only."""


class Ceremonies(Protocol):
    """WebAuthn ceremonies for the console's origin, with user verification by the device (PIN, finger, face)."""

    def registration(self, user: User, known: Sequence[Passkey], challenge: bytes) -> str:
        """Return the options of `navigator.credentials.create` as JSON; devices with a `known` passkey refuse."""
        ...

    def registered(self, answer: str, challenge: bytes) -> Registration:
        """Return the credential of a registration response. Raises PasskeyRefused."""
        ...

    def sign_in(self, challenge: bytes, known: Sequence[Passkey] = ()) -> str:
        """Return the options of `navigator.credentials.get` as JSON, for any passkey or one of the `known`."""
        ...

    def credential(self, answer: str) -> bytes:
        """Return the id of the responding credential, unverified. Raises PasskeyRefused."""
        ...

    def signed(self, answer: str, challenge: bytes, passkey: Passkey) -> int:
        """Verify the signature and return its count. Raises PasskeyRefused."""
        ...


@dataclass(frozen=True, slots=True)
class Enrolment:
    """Data for setting up an authenticator: `secret` to type, and `picture`, a QR code as SVG."""

    secret: str
    picture: str


class OneTimeCodes(Protocol):
    """One-time codes: SHA-1, six digits, 30 seconds, as all apps support."""

    def secret(self) -> str:
        """Return a new secret: base32, 160 bits."""
        ...

    def enrolment(self, secret: str, account: str) -> Enrolment:
        """Return the data to set up an app for that account."""
        ...

    def step(self, secret: str, code: str, now: datetime) -> int | None:
        """Return the step of the code among the present one and its neighbours, or None."""
        ...


class Passwords(Protocol):
    """Password hashing; each call takes tens of milliseconds of a separate thread.

    Raises Overloaded if too many calls wait.
    """

    async def hash(self, password: str) -> str:
        """Return the encoded hash, with salt and cost."""
        ...

    async def verify(self, encoded: str | None, password: str) -> bool:
        """Return whether the password matches. None takes as long and never matches."""
        ...

    def is_outdated(self, encoded: str) -> bool:
        """Return whether the hash was made with another cost than the present one."""
        ...


class PasswordGuesses(Protocol):
    """Estimation of guessability. Raises Overloaded if too many calls wait."""

    async def withstands(self, password: str, own: Sequence[str]) -> int:
        """Return the number of guesses that a password withstands; `own` are its person's words, guessed first."""
        ...
