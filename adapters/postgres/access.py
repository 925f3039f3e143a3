"""API keys in PostgreSQL."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from adapters.postgres.listing import page_names, page_of, page_params
from adapters.postgres.nodes.pool import Pool
from adapters.postgres.orgs import organisation_of
from adapters.postgres.session import Fetched, Session
from adapters.postgres.sqlfile import rendered, statements
from domain.access.model import ApiKey, Principal, effective_scopes
from domain.kernel.errors import Unavailable
from domain.kernel.paging import Page, PageRequest
from domain.kernel.tenancy import Actor, Tenant

SQL = statements("access")


class PostgresKeyStore:
    """The organisation's API keys."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def add(self, key: ApiKey) -> None:
        async with self._session.owning():
            await self._session.run(
                SQL["add"],
                id=key.id,
                name=key.name,
                digest=key.digest,
                last4=key.last4,
                restricted=key.restricted,
                scopes=sorted(key.scopes),
                member=key.member,
                networks=list(key.networks),
                expires_at=key.expires_at,
                created_at=key.created_at,
            )

    async def revoke(self, id: str) -> bool:
        async with self._session.owning():
            return await self._session.run(SQL["revoke"], id=id, now=self._session.now) == 1

    async def get(self, id: str) -> ApiKey | None:
        row = await self._session.one(SQL["get"], id=id)
        return _key(row) if row else None

    async def page(self, page_request: PageRequest, *, ended: bool = False) -> Page[ApiKey]:
        names = page_names(page_request) | {"ended" if ended else "open"}
        statement = rendered(SQL["list"], names, page_request.limit + 1)
        rows = await self._session.all(statement, **page_params(page_request))
        return page_of([_key(row) for row in rows], page_request, lambda key: key.id)

    async def used(self, ids: Collection[str]) -> Mapping[str, datetime]:
        return dict(await self._session.all(SQL["used"], ids=list(ids)))

    async def revoke_of(self, member: str) -> Sequence[str]:
        async with self._session.owning():
            rows = await self._session.all(SQL["revoke_of"], member=member, now=self._session.now)
        return sorted(id_ for (id_,) in rows)


class PostgresCredentials:
    """Across tenants: what a presented credential proves."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def key(self, digest: bytes) -> tuple[ApiKey, Principal] | None:
        return (await self.keys([digest])).get(digest)

    async def keys(self, digests: Collection[bytes]) -> Mapping[bytes, tuple[ApiKey, Principal]]:
        async with self._pool.reference() as link:
            cursor = await link.cursor.execute(SQL["keys"], {"digests": list(digests)})
            proofs = [_proof(row) for row in await cursor.fetchall() if not row[14]]
        return {proof[0].digest: proof for proof in proofs}

    async def pin_version(self, org: str, version: str) -> str:
        """While a node is out of reach nothing that lies on all of them can be changed: a later request pins it."""
        try:
            async with self._pool.system() as link, link.connection.transaction(), link.owning():
                cursor = await link.cursor.execute(SQL["pin"], {"org": org, "version": version})
                row = await cursor.fetchone()
        except Unavailable:
            return version
        return str(row[0]) if row else version


def _key(row: Fetched) -> ApiKey:
    """A key from its fourteen columns."""
    (
        id_,
        org,
        livemode,
        name,
        digest,
        last4,
        restricted,
        scopes,
        role,
        networks,
        expires,
        revoked,
        created,
        member,
    ) = row[:14]
    return ApiKey(
        id_, Tenant(org, livemode), name, digest, last4, restricted, frozenset(scopes), role, tuple(networks),
        expires, revoked, created, member,
    )  # fmt: skip


def _proof(row: Fetched) -> tuple[ApiKey, Principal]:
    key = _key(row)
    principal = Principal(
        tenant=key.tenant,
        actor=Actor("api_key", key.id),
        via="api",
        role=key.role,
        scopes=effective_scopes(key.scopes, key.role),
        organisation=organisation_of(row[15:]),
    )
    return key, principal
