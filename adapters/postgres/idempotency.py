"""Idempotency keys in PostgreSQL, locked by advisory locks of the transaction, which a crash releases."""

from adapters.postgres.session import jsonb, lock_number
from adapters.postgres.stores import TenantStore, run, statements, values_of
from domain.kernel.errors import RequestInProgress
from domain.kernel.retention import IDEMPOTENT_ANSWERS
from ports.idempotency import IdempotencyStore, StoredAnswer

SQL = statements("idempotency")


class PostgresIdempotencyStore(TenantStore, IdempotencyStore):
    """Stored responses of the tenant."""

    _sql = SQL
    revise = run()

    async def hold(self, key: str) -> StoredAnswer | None:
        """Lock the key and return the response stored under it. Raises RequestInProgress if another request holds the lock.

        The lock is a separate statement, so that the next one sees what the previous holder committed.
        """
        tenant = self._session.tenant
        if not await self._value("hold", lock=lock_number(tenant.org, tenant.livemode, key)):
            raise RequestInProgress(retry_after=1)
        since = self._session.now - IDEMPOTENT_ANSWERS
        stored = await self._first(_answer, "stored", key=key, since=since)
        if stored is None:
            await self._run("forget", key=key, since=since)
        return stored

    async def keep(self, key: str, answer: StoredAnswer) -> None:
        values = values_of(answer) | {"headers": jsonb([list(pair) for pair in answer.headers])}
        await self._run("keep", key=key, **values)


def _answer(fingerprint: bytes, status: int, headers: list[list[str]], body: bytes) -> StoredAnswer:
    return StoredAnswer(fingerprint, status, tuple((name, value) for name, value in headers), body)
