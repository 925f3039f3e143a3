"""Idempotency keys in PostgreSQL, locked by advisory locks of the transaction, which a crash of the process releases."""

from adapters.postgres.session import compute_lock_number, encode_jsonb
from adapters.postgres.stores import TenantStore, build_field_params, execute_count, load_statements
from domain.kernel.errors import RequestInProgress
from domain.kernel.retention import IDEMPOTENT_RESPONSES
from ports.idempotency import IdempotencyStore, StoredResponse

SQL = load_statements("idempotency")


class PostgresIdempotencyStore(TenantStore, IdempotencyStore):
    """Stored responses of the tenant's requests with an idempotency key."""

    _sql = SQL
    replace_body = execute_count()

    async def lock(self, key: str) -> StoredResponse | None:
        """Lock the idempotency key until the transaction ends; return the response stored under the key, or None.

        Raises RequestInProgress if another request holds the lock.
        """
        tenant = self._session.tenant
        if not await self._fetch_scalar("lock_key", lock=compute_lock_number(tenant.org, tenant.livemode, key)):
            raise RequestInProgress(retry_after=1)
        # a separate statement from the lock, so that it reads what the previous holder of the lock has committed
        since = self._session.now - IDEMPOTENT_RESPONSES
        stored = await self._fetch_first(_build_response, "find_response", key=key, since=since)
        if stored is None:
            await self._run("delete_expired_key", key=key, since=since)
        return stored

    async def store(self, key: str, response: StoredResponse) -> None:
        values = build_field_params(response) | {"headers": encode_jsonb([list(pair) for pair in response.headers])}
        await self._run("save_response", key=key, **values)


def _build_response(fingerprint: bytes, status: int, headers: list[list[str]], body: bytes) -> StoredResponse:
    return StoredResponse(fingerprint, status, tuple((name, value) for name, value in headers), body)
