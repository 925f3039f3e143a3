"""What people prove themselves with beside a password, in store: nobody's tenant. Each call is a transaction of its own."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from domain.people.factors import Authenticator, Passkey


class Factors(Protocol):
    """One app for one-time codes a person, and their recovery codes."""

    async def authenticator(self, user: str) -> Authenticator | None:
        """The person's, confirmed or not."""
        ...

    async def enrol(self, authenticator: Authenticator) -> Authenticator:
        """Keep one that is not confirmed yet, unless there is one; answers the person's, confirmed or not."""
        ...

    async def confirm(self, authenticator: Authenticator, step: int, digests: Sequence[bytes], now: datetime) -> bool:
        """A first code was right: it counts from now on, with these recovery codes' keyed hashes, and no others.

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
        """The oldest first."""
        ...

    async def find(self, credential: bytes) -> Passkey | None:
        """The one of that credential."""
        ...

    async def used(self, passkey: Passkey, sign_count: int, now: datetime) -> bool:
        """It has signed; False when its count does not rise (another device has a copy), unless it counts nothing."""
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
