"""One-time codes, recovery codes and passkeys in PostgreSQL: with the people, on the coordinator. What is used once is used by one update."""

from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime

from adapters.postgres.coordinator_store import CoordinatorStore, Row
from adapters.postgres.nodes.node_pool import PooledConnection
from adapters.postgres.sqlfile import statements
from domain.people.factors import Authenticator, Passkey

SQL = statements("factors")


class _Store(CoordinatorStore):
    """With these statements."""

    _sql = SQL


class PostgresFactors(_Store):
    """Factors."""

    async def authenticator(self, user: str) -> Authenticator | None:
        rows = await self._rows("authenticator", user=user)
        if not rows:
            return None
        whose, sealed, confirmed_at, last_step = rows[0]
        return Authenticator(whose, bytes(sealed), confirmed_at, last_step)

    async def enrol(self, authenticator: Authenticator) -> Authenticator:
        await self._run("enrol", user=authenticator.user, sealed=authenticator.sealed)
        return await self.authenticator(authenticator.user) or authenticator

    async def confirm(self, authenticator: Authenticator, step: int, digests: Sequence[bytes], now: datetime) -> bool:
        values = {"user": authenticator.user, "sealed": authenticator.sealed, "step": step, "now": now}
        async with self._pool.system() as link, link.connection.transaction():
            if (await link.cursor.execute(SQL["confirm"], values)).rowcount != 1:
                return False
            await _replace_codes(link, authenticator.user, digests)
        return True

    async def take_step(self, user: str, step: int) -> bool:
        return await self._run("take_step", user=user, step=step) == 1

    async def disenrol(self, user: str) -> bool:
        async with self._pool.system() as link, link.connection.transaction():
            ended = (await link.cursor.execute(SQL["disenrol"], {"user": user})).rowcount == 1
            await link.cursor.execute(SQL["drop_codes"], {"user": user})
        return ended

    async def replace_codes(self, user: str, digests: Sequence[bytes]) -> bool:
        async with self._pool.system() as link, link.connection.transaction():
            if (await link.cursor.execute(SQL["hold"], {"user": user})).rowcount != 1:
                return False
            await _replace_codes(link, user, digests)
        return True

    async def use_code(self, user: str, digest: bytes, now: datetime) -> bool:
        return await self._run("use_code", user=user, digest=digest, now=now) == 1

    async def codes_left(self, user: str) -> int:
        rows = await self._rows("codes_left", user=user)
        return int(rows[0][0])


async def _replace_codes(link: PooledConnection, user: str, digests: Sequence[bytes]) -> None:
    await link.cursor.execute(SQL["drop_codes"], {"user": user})
    await link.cursor.execute(SQL["add_codes"], {"user": user, "digests": list(digests)})


class PostgresPasskeys(_Store):
    """Passkeys."""

    async def add(self, passkey: Passkey) -> bool:
        values = {field.name: getattr(passkey, field.name) for field in fields(passkey)}
        return await self._run("add_passkey", **values) == 1

    async def of_user(self, user: str) -> Sequence[Passkey]:
        return [_passkey(row) for row in await self._rows("passkeys_of", user=user)]

    async def find(self, credential: bytes) -> Passkey | None:
        rows = await self._rows("passkey", credential=credential)
        return _passkey(rows[0]) if rows else None

    async def used(self, passkey: Passkey, sign_count: int, now: datetime) -> bool:
        return await self._run("passkey_used", id=passkey.id, sign_count=sign_count, now=now) == 1

    async def rename(self, user: str, id: str, name: str) -> bool:
        return await self._run("rename_passkey", user=user, id=id, name=name) == 1

    async def remove(self, user: str, id: str) -> bool:
        return await self._run("remove_passkey", user=user, id=id) == 1

    async def challenge(self, digest: bytes, user: str | None, expires_at: datetime) -> None:
        await self._run("add_challenge", digest=digest, user=user, expires_at=expires_at)

    async def take_challenge(self, digest: bytes, user: str | None, now: datetime) -> bool:
        return await self._run("take_challenge", digest=digest, user=user, now=now) == 1

    async def forget_challenges(self, before: datetime) -> int:
        return await self._run("forget_challenges", before=before)


def _passkey(row: Row) -> Passkey:
    id_, user, credential, public_key, *rest = row
    return Passkey(id_, user, bytes(credential), bytes(public_key), *rest)
