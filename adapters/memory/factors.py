"""One-time codes, recovery codes and passkeys in memory."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from adapters.memory.table import EVERYWHERE, MemoryDatabase, Table
from domain.people.factors import Authenticator, Passkey

AUTHENTICATORS: Final = Table[Authenticator]("authenticators", lambda one: one.user)
PASSKEYS: Final = Table[Passkey]("passkeys", lambda one: one.id)


class MemoryFactors:
    """Factors."""

    def __init__(self, store: MemoryDatabase) -> None:
        self._store = store
        self._codes: dict[str, dict[bytes, datetime | None]] = {}

    async def authenticator(self, user: str) -> Authenticator | None:
        return self._store.committed(AUTHENTICATORS, EVERYWHERE).get(user)

    async def enrol(self, authenticator: Authenticator) -> Authenticator:
        known = await self.authenticator(authenticator.user)
        if known is None:
            self._store.write(AUTHENTICATORS, EVERYWHERE, authenticator)
        return known or authenticator

    async def confirm(self, authenticator: Authenticator, step: int, digests: Sequence[bytes], now: datetime) -> bool:
        known = await self.authenticator(authenticator.user)
        if known is None or known.confirmed_at is not None or known.sealed != authenticator.sealed:
            return False
        self._store.write(AUTHENTICATORS, EVERYWHERE, replace(known, confirmed_at=now, last_step=step))
        return await self.replace_codes(authenticator.user, digests)

    async def take_step(self, user: str, step: int) -> bool:
        known = await self.authenticator(user)
        if known is None or known.confirmed_at is None or step <= known.last_step:
            return False
        self._store.write(AUTHENTICATORS, EVERYWHERE, replace(known, last_step=step))
        return True

    async def disenrol(self, user: str) -> bool:
        there = await self.authenticator(user) is not None
        self._store.erase(AUTHENTICATORS, EVERYWHERE, user)
        self._codes.pop(user, None)
        return there

    async def replace_codes(self, user: str, digests: Sequence[bytes]) -> bool:
        known = await self.authenticator(user)
        if known is None or known.confirmed_at is None:
            return False
        self._codes[user] = dict.fromkeys(digests)
        return True

    async def use_code(self, user: str, digest: bytes, now: datetime) -> bool:
        codes = self._codes.get(user, {})
        if digest not in codes or codes[digest] is not None:
            return False
        codes[digest] = now
        return True

    async def codes_left(self, user: str) -> int:
        return sum(used is None for used in self._codes.get(user, {}).values())


class MemoryPasskeys:
    """Passkeys."""

    def __init__(self, store: MemoryDatabase) -> None:
        self._store = store
        self._challenges: dict[bytes, tuple[str | None, datetime]] = {}

    async def add(self, passkey: Passkey) -> bool:
        if await self.find(passkey.credential) is not None:
            return False
        self._store.write(PASSKEYS, EVERYWHERE, passkey)
        return True

    async def of_user(self, user: str) -> Sequence[Passkey]:
        return sorted((one for one in self._all() if one.user == user), key=lambda one: one.id)

    async def find(self, credential: bytes) -> Passkey | None:
        return next((one for one in self._all() if one.credential == credential), None)

    async def used(self, passkey: Passkey, sign_count: int, now: datetime) -> bool:
        known = self._store.committed(PASSKEYS, EVERYWHERE).get(passkey.id)
        if known is None or not (known.sign_count < sign_count or known.sign_count == sign_count == 0):
            return False
        self._store.write(PASSKEYS, EVERYWHERE, replace(known, sign_count=sign_count, used_at=now))
        return True

    async def rename(self, user: str, id: str, name: str) -> bool:
        known = self._own(user, id)
        if known is not None:
            self._store.write(PASSKEYS, EVERYWHERE, replace(known, name=name))
        return known is not None

    async def remove(self, user: str, id: str) -> bool:
        known = self._own(user, id)
        if known is not None:
            self._store.erase(PASSKEYS, EVERYWHERE, id)
        return known is not None

    async def challenge(self, digest: bytes, user: str | None, expires_at: datetime) -> None:
        self._challenges[digest] = user, expires_at

    async def take_challenge(self, digest: bytes, user: str | None, now: datetime) -> bool:
        whose, expires_at = self._challenges.get(digest, (user, now))
        if whose != user or expires_at <= now:
            return False
        del self._challenges[digest]
        return True

    async def forget_challenges(self, before: datetime) -> int:
        over = [digest for digest, (_, expires_at) in self._challenges.items() if expires_at < before]
        for digest in over:
            del self._challenges[digest]
        return len(over)

    def _all(self) -> Sequence[Passkey]:
        return list(self._store.committed(PASSKEYS, EVERYWHERE).values())

    def _own(self, user: str, id: str) -> Passkey | None:
        known = self._store.committed(PASSKEYS, EVERYWHERE).get(id)
        return known if known is not None and known.user == user else None
