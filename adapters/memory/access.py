"""API keys and what they prove, in memory."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final

from adapters.memory.orgs import MEMBERS, ORGS
from adapters.memory.table import EVERYWHERE, MemoryDatabase, Table, Transaction
from domain.access.model import ApiKey, Principal, effective_scopes
from domain.kernel.errors import NotFound
from domain.kernel.tenancy import Actor

KEYS: Final = Table[ApiKey]("api_keys", lambda key: key.id)


class MemoryKeys:
    """KeyStore."""

    def __init__(self, transaction: Transaction) -> None:
        self._now = transaction.now
        self._rows = transaction.rows(KEYS)

    async def add(self, key: ApiKey) -> None:
        await self._rows.add(key)

    async def revoke(self, id: str) -> bool:
        key = self._rows.get(id)
        if key is None or key.revoked_at is not None:
            return False
        await self._rows.put(replace(key, revoked_at=self._now))
        return True


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
