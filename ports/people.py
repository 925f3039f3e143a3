"""People, their sessions and their links in store: nobody's tenant."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from domain.access.model import Credential, Principal
from domain.people.model import Method, OneTimeLink, Purpose, SecurityEvent, Session, SignedIn, User


class People(Protocol):
    """Who there is. Each call is a transaction of its own."""

    async def get(self, id: str) -> User | None:
        """The user of that id."""
        ...

    async def several(self, ids: Collection[str]) -> Mapping[str, User]:
        """The users of those ids, by id; unknown ones are left out."""
        ...

    async def by_email(self, email: str) -> User | None:
        """The user of that address, ignoring case."""
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
        """The encoded hash of the password; None for who has none."""
        ...

    async def set_password(self, user: str, encoded: str, now: datetime) -> None:
        """Keep another password."""
        ...

    async def note(self, event: SecurityEvent) -> None:
        """Keep what concerns a person's security."""
        ...

    async def events(self, user: str, limit: int) -> Sequence[SecurityEvent]:
        """The newest of them first."""
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
        """The session of that keyed hash with its person and what they may do now, also when it is over (the caller judges)."""
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
        """What tokens with those keyed hashes prove (ports/access.py:TokenProofs); console sessions are left out."""
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
        """The link, while it can be used."""
        ...

    async def use(self, digest: bytes, purpose: Purpose, now: datetime) -> OneTimeLink | None:
        """The link, now used; None when it was used or is over, also for all but one who use it at once."""
        ...
