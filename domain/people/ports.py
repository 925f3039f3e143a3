"""People, their sessions and their links in store: nobody's tenant."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from domain.access.model import Credential, Principal
from domain.people.factors import Authenticator, Passkey
from domain.people.model import Method, OneTimeLink, Purpose, SecurityEvent, Session, SignedIn, User


class People(Protocol):
    """Who there is. Each call is a transaction of its own."""

    async def get(self, id: str) -> User | None:
        """Return the user with the ID, or None."""
        ...

    async def several(self, ids: Collection[str]) -> Mapping[str, User]:
        """Return the users by ID; unknown IDs are left out."""
        ...

    async def by_email(self, email: str) -> User | None:
        """Return the user with the address, ignoring case, or None."""
        ...

    async def add(self, user: User) -> User:
        """Keep a new user; answers the one who has that address already, if there is one."""
        ...

    async def set_up(self, user: User, encoded: str, now: datetime) -> bool:
        """Keep a new user and the hash of their password, in one step; False, and nothing, where somebody has that address."""
        ...

    async def change(self, user: User) -> None:
        """Keep another name, or that the address was verified."""
        ...

    async def password(self, user: str) -> str | None:
        """Return the encoded password hash, or None without a password."""
        ...

    async def set_password(self, user: str, encoded: str, now: datetime) -> None:
        """Keep another password."""
        ...

    async def note(self, event: SecurityEvent) -> None:
        """Keep what concerns a person's security."""
        ...

    async def events(self, user: str, limit: int) -> Sequence[SecurityEvent]:
        """Return the newest security events first."""
        ...

    async def forget_events(self, before: datetime) -> int:
        """Delete those that are older; answers how many."""
        ...


class Sessions(Protocol):
    """Sessions, console's and tokens'. Each call is a transaction of its own."""

    async def add(self, session: Session) -> None:
        """Keep a new session."""
        ...

    async def find(self, digest: bytes) -> SignedIn | None:
        """Return the session with the keyed hash, its person and their current permissions, also after it ended (the caller decides)."""
        ...

    async def of_user(self, user: str) -> Sequence[Session]:
        """Those not ended, the newest first."""
        ...

    async def save(self, session: Session) -> None:
        """Keep what its person looks at, and how they have proved themselves."""
        ...

    async def seen(self, id: str, now: datetime) -> None:
        """Keep when it was last used, and nothing else: what its person looks at may change at that moment."""
        ...

    async def revoke(self, ids: Collection[str], now: datetime) -> int:
        """End them; answers how many were not ended yet."""
        ...

    async def proofs(self, digests: Collection[bytes]) -> Mapping[bytes, tuple[Credential, Principal]]:
        """Return what tokens with those keyed hashes prove (domain/access/ports.py:TokenProofs); console sessions are left out."""
        ...

    async def forget(self, before: datetime) -> int:
        """Delete those, and links, that were over before then; answers how many."""
        ...


class SignInRules(Protocol):
    """What organisations demand of how their people sign in."""

    async def allows(self, user: str, org: str, methods: Collection[Method]) -> bool:
        """Whether a member who has shown who they are by `methods` may look at the organisation."""
        ...

    async def note(self, user: str, org: str, methods: Collection[Method]) -> None:
        """Somebody looks at it who was allowed to: what deserves to be told of that, is."""
        ...


class OneTimeLinks(Protocol):
    """Links for one use."""

    async def add(self, link: OneTimeLink) -> None:
        """Keep a new link; older ones of the same person and purpose are good no more."""
        ...

    async def withdraw(self, user: str) -> None:
        """All that the person has not used yet are good no more."""
        ...

    async def find(self, digest: bytes, purpose: Purpose, now: datetime) -> OneTimeLink | None:
        """Return the link if it can be used, or None."""
        ...

    async def use(self, digest: bytes, purpose: Purpose, now: datetime) -> OneTimeLink | None:
        """Use the link once and return it; None if it was used or has expired, also for concurrent calls after the first."""
        ...


class Factors(Protocol):
    """One app for one-time codes a person, and their recovery codes."""

    async def authenticator(self, user: str) -> Authenticator | None:
        """Return the person's authenticator, confirmed or not, or None."""
        ...

    async def enrol(self, authenticator: Authenticator) -> Authenticator:
        """Keep one that is not confirmed yet, unless there is one; answers the person's, confirmed or not."""
        ...

    async def confirm(self, authenticator: Authenticator, step: int, digests: Sequence[bytes], now: datetime) -> bool:
        """Confirm the authenticator after its first code and replace the recovery codes by these keyed hashes.

        False, and nothing, when another call was faster, or it is not the person's any more.
        """
        ...

    async def take_step(self, user: str, step: int) -> bool:
        """Use a step up; False when it, or a later one, was used."""
        ...

    async def disenrol(self, user: str) -> bool:
        """Forget the app and the recovery codes; False when there was none."""
        ...

    async def replace_codes(self, user: str, digests: Sequence[bytes]) -> bool:
        """Keep these recovery codes' keyed hashes, and no others; False, and nothing, where no app is confirmed."""
        ...

    async def use_code(self, user: str, digest: bytes, now: datetime) -> bool:
        """Use a recovery code up; False when it is none, or used."""
        ...

    async def codes_left(self, user: str) -> int:
        """How many can be used."""
        ...


class Passkeys(Protocol):
    """Passkeys, and the challenges that they are to sign."""

    async def add(self, passkey: Passkey) -> bool:
        """Keep a new one; False when that credential is known."""
        ...

    async def of_user(self, user: str) -> Sequence[Passkey]:
        """Return the user's passkeys, oldest first."""
        ...

    async def find(self, credential: bytes) -> Passkey | None:
        """Return the passkey with the credential ID, or None."""
        ...

    async def used(self, passkey: Passkey, sign_count: int, now: datetime) -> bool:
        """Record a signature; return False if the counter does not increase (a copied key), unless the device does not count."""
        ...

    async def rename(self, user: str, id: str, name: str) -> bool:
        """Call it something else; False when it is not that person's."""
        ...

    async def remove(self, user: str, id: str) -> bool:
        """Forget it; False when it is not that person's."""
        ...

    async def challenge(self, digest: bytes, user: str | None, expires_at: datetime) -> None:
        """Keep a challenge's keyed hash; `user` is who is to answer it, if that is known."""
        ...

    async def take_challenge(self, digest: bytes, user: str | None, now: datetime) -> bool:
        """Use a challenge up; False when it is none of that person's, was used, or is over."""
        ...

    async def forget_challenges(self, before: datetime) -> int:
        """Delete those that were over before then; answers how many."""
        ...


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
        """Return the options of `navigator.credentials.create` as JSON; devices with a `known` passkey refuse."""
        ...

    def registered(self, answer: str, challenge: bytes) -> Registration:
        """Verify the response of a registration. Raises PasskeyRefused."""
        ...

    def sign_in(self, challenge: bytes, known: Sequence[Passkey] = ()) -> str:
        """Return the options of `navigator.credentials.get` as JSON, for any passkey or for one of `known`."""
        ...

    def credential(self, answer: str) -> bytes:
        """Return the credential ID of a response, without verification. Raises PasskeyRefused."""
        ...

    def signed(self, answer: str, challenge: bytes, passkey: Passkey) -> int:
        """Verify a signature by the passkey, and return its new counter. Raises PasskeyRefused."""
        ...


@dataclass(frozen=True, slots=True)
class Enrolment:
    """What an app is given: `secret` to type, and `picture`, a QR code as SVG."""

    secret: str
    picture: str


class OneTimeCodes(Protocol):
    """SHA-1, six digits, 30 seconds, as every app has it."""

    def secret(self) -> str:
        """Return a new secret: base32, 160 bits."""
        ...

    def enrolment(self, secret: str, account: str) -> Enrolment:
        """How an app is given the secret, which shows it as that account's."""
        ...

    def step(self, secret: str, code: str, now: datetime) -> int | None:
        """Return the time step of a code, among the current one and its neighbours; None for a wrong code."""
        ...


class Passwords(Protocol):
    """Hashes; each call takes tens of milliseconds of a thread that nothing else waits for.

    Raises Overloaded when more wait already than can be served soon.
    """

    async def hash(self, password: str) -> str:
        """Return the encoded hash of the password, with salt and cost."""
        ...

    async def verify(self, encoded: str | None, password: str) -> bool:
        """Whether it is that password. None (there is none) takes as long, and is never."""
        ...

    def is_outdated(self, encoded: str) -> bool:
        """Whether it was hashed at another cost than is paid now."""
        ...


class PasswordGuesses(Protocol):
    """Judges passwords. Raises Overloaded when more wait already than can be judged soon."""

    async def withstands(self, password: str, own: Sequence[str]) -> int:
        """How many guesses a password withstands when what is chosen most is tried first; `own` are words of its person, tried first of all."""
        ...
