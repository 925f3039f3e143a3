"""Idempotency keys in PostgreSQL: held by an advisory lock of the transaction, so that a crash frees them at once."""

from adapters.postgres.nodes.node_pool import PooledConnection
from adapters.postgres.nodes.pool import Pool
from adapters.postgres.session import Session, jsonb, lock_number
from adapters.postgres.sqlfile import statements
from domain.kernel.clock import now
from domain.kernel.errors import RequestInProgress
from domain.kernel.retention import IDEMPOTENT_ANSWERS
from ports.idempotency import StoredAnswer

SQL = statements("idempotency")


class PostgresIdempotencyStore:
    """Answers kept for retries."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def hold(self, key: str) -> StoredAnswer | None:
        """Hold the key and answer what is stored under it. Raises RequestInProgress when another request holds it.

        The lock comes in a statement of its own: only then does the next one see what its last holder committed.
        """
        tenant = self._session.tenant
        row = await self._session.one(SQL["hold"], lock=lock_number(tenant.org, tenant.livemode, key))
        if not row or not row[0]:
            raise RequestInProgress(retry_after=1)
        since = self._session.now - IDEMPOTENT_ANSWERS
        stored = await self._session.one(SQL["stored"], key=key, since=since)
        if stored is None:
            await self._session.run(SQL["forget"], key=key, since=since)
            return None
        fingerprint, status, headers, body = stored
        return StoredAnswer(fingerprint, status, tuple((name, value) for name, value in headers), body)

    async def keep(self, key: str, answer: StoredAnswer) -> None:
        await self._session.run(
            SQL["keep"],
            key=key,
            fingerprint=answer.fingerprint,
            status=answer.status,
            headers=jsonb([list(pair) for pair in answer.headers]),
            body=answer.body,
            now=self._session.now,
        )

    async def revise(self, key: str, body: bytes) -> None:
        await self._session.run(SQL["revise"], key=key, body=body)


class PostgresIdempotencyMaintenance:
    """Across tenants, for the scheduler."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def purge_expired(self) -> int:
        since = now() - IDEMPOTENT_ANSWERS

        async def purge(link: PooledConnection) -> int:
            cursor = await link.cursor.execute(link.here(SQL["expired"]), {"since": since})
            orgs = [org for (org,) in await cursor.fetchall()]
            cursor = await link.cursor.execute(SQL["purge_expired"], {"orgs": orgs, "since": since})
            return cursor.rowcount

        return sum(await self._pool.scatter_best_effort(purge))
