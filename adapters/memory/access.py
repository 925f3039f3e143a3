"""API keys and what they prove, in memory."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from adapters.memory.orgs import MEMBERS, ORGS
from adapters.memory.table import EVERYWHERE, MemoryDatabase, Table, Transaction
from domain.access.model import ApiKey, Principal, effective_scopes
from domain.kernel.errors import NotFound
from domain.kernel.paging import Page, PageRequest
from domain.kernel.tenancy import Actor, Tenant

KEYS: Final = Table[ApiKey]("api_keys", lambda key: key.id)


@dataclass(frozen=True, slots=True)
class KeyUse:
    """When a key was last used."""

    key: str
    used_at: datetime


KEY_USES: Final = Table[KeyUse]("key_uses", lambda use: use.key)


class MemoryKeys:
    """KeyStore."""

    def __init__(self, transaction: Transaction) -> None:
        self._now, self._transaction = transaction.now, transaction
        self._rows, self._uses = transaction.rows(KEYS), transaction.rows(KEY_USES)
        self._members = transaction.rows(MEMBERS, EVERYWHERE)

    async def add(self, key: ApiKey) -> None:
        await self._rows.add(key)

    async def revoke(self, id: str) -> bool:
        key = self._rows.get(id)
        if key is None or key.revoked_at is not None:
            return False
        await self._rows.put(replace(key, revoked_at=self._now))
        return True

    async def get(self, id: str) -> ApiKey | None:
        key = self._rows.get(id)
        return self._as_now(key) if key is not None else None

    async def page(self, page_request: PageRequest, *, ended: bool = False) -> Page[ApiKey]:
        page = self._rows.page(page_request, lambda key: (key.revoked_at is not None) is ended)
        return replace(page, items=tuple(map(self._as_now, page.items)))

    async def used(self, ids: Collection[str]) -> Mapping[str, datetime]:
        return {use.key: use.used_at for use in self._uses.where(lambda use: use.key in ids)}

    async def revoke_of(self, member: str) -> Sequence[str]:
        ended: list[str] = []
        for livemode in (True, False):
            rows = self._transaction.rows(KEYS, Tenant(self._transaction.tenant.org, livemode))
            for key in rows.where(lambda key: key.member == member and key.revoked_at is None):
                await rows.put(replace(key, revoked_at=self._now))
                ended.append(key.id)
        return sorted(ended)

    def _as_now(self, key: ApiKey) -> ApiKey:
        """With its member's role now; whose member has left keeps what it was made with."""
        member = self._members.get(f"{key.tenant.org}/{key.member}") if key.member is not None else None
        return replace(key, role=member.role) if member is not None else key


class MemoryCredentials:
    """Credentials."""

    def __init__(self, store: MemoryDatabase) -> None:
        self._store = store

    async def key(self, digest: bytes) -> tuple[ApiKey, Principal] | None:
        orgs = self._store.committed(ORGS, EVERYWHERE)
        for tenant, key in self._store.everyone(KEYS):
            if key.digest == digest and tenant.org in orgs:
                role = self._role(key)
                if role is None:
                    return None
                scopes = effective_scopes(key.scopes, role)
                return replace(key, role=role), Principal(
                    tenant, Actor("api_key", key.id), "api", role, scopes, orgs[tenant.org]
                )
        return None

    async def keys(self, digests: Collection[bytes]) -> Mapping[bytes, tuple[ApiKey, Principal]]:
        found = {digest: await MemoryCredentials.key(self, digest) for digest in digests}
        return {digest: proof for digest, proof in found.items() if proof is not None}

    def _role(self, key: ApiKey) -> str | None:
        """The making member's role now, None once that member has left; an operator's key keeps its own."""
        if key.member is None:
            return key.role
        member = self._store.committed(MEMBERS, EVERYWHERE).get(f"{key.tenant.org}/{key.member}")
        return member.role if member else None

    async def pin_version(self, org: str, version: str) -> str:
        organisation = self._store.committed(ORGS, EVERYWHERE).get(org)
        if organisation is None:
            raise NotFound
        if organisation.api_version is None:
            self._store.write(ORGS, EVERYWHERE, replace(organisation, api_version=version))
        return organisation.api_version or version
