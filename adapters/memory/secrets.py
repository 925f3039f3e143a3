"""The key ring, and what is sealed, in memory."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from adapters.memory.access import KEYS
from adapters.memory.audit import KEPT
from adapters.memory.factors import AUTHENTICATORS
from adapters.memory.idempotency import ANSWERS
from adapters.memory.outbox import OUTGOING
from adapters.memory.sources import SEALED, SOURCES, Sealed
from adapters.memory.sso import CONNECTIONS
from adapters.memory.table import EVERYWHERE, MemoryDatabase
from adapters.memory.webhooks import ENDPOINTS
from domain.kernel.tenancy import Tenant
from domain.secrets.model import NOBODYS, OF_PEOPLE, SealedKind, SealedValue
from domain.secrets.ports import StoredRing
from domain.webhooks.model import SealedSecrets
from ports.clock import Clock


class MemoryKeyRings:
    """KeyRings. `unknowing` are the ids of secrets that some other process does not know."""

    def __init__(self, store: MemoryDatabase, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self.ring: StoredRing | None = None
        self.unknowing: set[str] = set()

    async def read(self) -> StoredRing | None:
        return self.ring

    async def write(self, sealed: bytes, expected: bytes | None) -> bool:
        if (self.ring.sealed if self.ring else None) != expected:
            return False
        self.ring = StoredRing(sealed, self._clock.now())
        return True

    async def has_api_keys(self) -> bool:
        return any(True for _ in self._store.everyone(KEYS))

    async def lacking(self, key: str) -> int:
        return int(key in self.unknowing)


class MemorySealedValues:
    """SealedValues."""

    def __init__(self, store: MemoryDatabase) -> None:
        self._store = store

    def _of_people(self, kind: SealedKind) -> Iterator[SealedValue]:
        if kind is SealedKind.AUTHENTICATORS:
            for _, one in self._store.everyone(AUTHENTICATORS):
                yield SealedValue(kind, NOBODYS, one.user, one.sealed)
            return
        for _, message in self._store.everyone(OUTGOING):
            if message.sealed:
                yield SealedValue(kind, NOBODYS, message.id, message.sealed)

    def _of(self, kind: SealedKind) -> Iterator[SealedValue]:
        if kind is SealedKind.CREDENTIALS:
            for tenant, sealed in self._store.everyone(SEALED):
                source = self._store.committed(SOURCES, tenant)[sealed.source]
                yield SealedValue(kind, tenant, source.id, sealed.sealed, source.connector, source.config)
        elif kind is SealedKind.KEPT_FOR_UNDOING:
            for tenant, beside in self._store.everyone(KEPT):
                yield SealedValue(kind, tenant, beside.entry, beside.sealed)
        elif kind is SealedKind.SSO_SECRETS:
            yield from self._of_connections()
        elif kind is SealedKind.ANSWERS:
            for tenant, kept in self._store.everyone(ANSWERS):
                if kept.answer.body[:2] in (b"\x01\x10", b"\x02\x10"):
                    yield SealedValue(kind, tenant, kept.key, kept.answer.body)
        else:
            yield from self._of_people(kind) if kind in OF_PEOPLE else self._of_endpoints(kind)

    def _of_connections(self) -> Iterator[SealedValue]:
        for _, one in self._store.everyone(CONNECTIONS):
            yield SealedValue(SealedKind.SSO_SECRETS, Tenant(one.org, True), one.owner, one.sealed)

    def _of_endpoints(self, kind: SealedKind) -> Iterator[SealedValue]:
        for tenant, endpoint in self._store.everyone(ENDPOINTS):
            box = _column(kind, endpoint.secrets)
            if box is not None:
                yield SealedValue(kind, tenant, endpoint.endpoint.id, box)

    async def stale(
        self, kind: SealedKind, stamp: bytes, after: SealedValue | None, limit: int
    ) -> Sequence[SealedValue]:
        found = sorted((one for one in self._of(kind) if not one.sealed.startswith(stamp)), key=_place)
        return [one for one in found if after is None or _place(one) > _place(after)][:limit]

    async def replace(self, value: SealedValue, fresh: bytes) -> bool:
        present = {_place(one): one for one in self._of(value.kind)}
        if present.get(_place(value)) is None or present[_place(value)].sealed != value.sealed:
            return False
        if value.kind is SealedKind.CREDENTIALS:
            self._store.write(SEALED, value.tenant, Sealed(value.owner, fresh))
        elif value.kind is SealedKind.KEPT_FOR_UNDOING:
            beside = self._store.committed(KEPT, value.tenant)[value.owner]
            self._store.write(KEPT, value.tenant, replace(beside, sealed=fresh))
        elif value.kind is SealedKind.OUTGOING_MAIL:
            message = self._store.committed(OUTGOING, EVERYWHERE)[value.owner]
            self._store.write(OUTGOING, EVERYWHERE, replace(message, sealed=fresh))
        elif value.kind is SealedKind.AUTHENTICATORS:
            one = self._store.committed(AUTHENTICATORS, EVERYWHERE)[value.owner]
            self._store.write(AUTHENTICATORS, EVERYWHERE, replace(one, sealed=fresh))
        elif value.kind is SealedKind.SSO_SECRETS:
            connection = self._store.committed(CONNECTIONS, EVERYWHERE)[value.tenant.org]
            self._store.write(CONNECTIONS, EVERYWHERE, replace(connection, sealed=fresh))
        elif value.kind is SealedKind.ANSWERS:
            kept = self._store.committed(ANSWERS, value.tenant)[value.owner]
            self._store.write(ANSWERS, value.tenant, replace(kept, answer=replace(kept.answer, body=fresh)))
        else:
            endpoint = self._store.committed(ENDPOINTS, value.tenant)[value.owner]
            secrets = endpoint.secrets
            changed = (
                SealedSecrets(fresh, secrets.previous)
                if value.kind is SealedKind.WEBHOOK_SECRETS
                else SealedSecrets(secrets.current, fresh)
            )
            self._store.write(ENDPOINTS, value.tenant, replace(endpoint, secrets=changed))
        return True

    async def counts(self) -> Mapping[str, Mapping[str, int]]:
        found: dict[str, Counter[str]] = {}
        for kind in SealedKind:
            for one in self._of(kind):
                found.setdefault(one.sealed[2:18].decode("ascii", "replace"), Counter())[kind.value] += 1
        return found


def _column(kind: SealedKind, secrets: SealedSecrets) -> bytes | None:
    return secrets.current if kind is SealedKind.WEBHOOK_SECRETS else secrets.previous


def _place(value: SealedValue) -> tuple[str, bool, str]:
    tenant: Tenant = value.tenant
    return tenant.org, tenant.livemode, value.owner
