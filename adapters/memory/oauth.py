"""Apps, grants and sign-ins of OAuth in memory."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final, TypeVar

from adapters.memory.orgs import MEMBERS, ORGS
from adapters.memory.table import EVERYWHERE, MemoryDatabase, Table, Transaction
from domain.access.model import Credential, Principal
from domain.kernel.tenancy import Actor, Tenant
from domain.oauth.model import AccessToken, App, Code, Device, Family, Grant, HeldToken, Token, TokenKind

T = TypeVar("T")
APPS: Final = Table[App]("oauth_apps", lambda app: app.id, descending=False)
CLIENTS: Final = Table[App]("oauth_clients", lambda app: app.client_id)
GRANTS: Final = Table[Grant](
    "oauth_grants",
    lambda grant: grant.id,
    descending=False,
    unique=lambda grant: (grant.org, grant.app, grant.user) if grant.revoked_at is None else None,
)
CODES: Final = Table[Code]("oauth_codes", lambda code: code.digest.hex())
FAMILIES: Final = Table[Family]("oauth_families", lambda family: family.id)
TOKENS: Final = Table[Token]("oauth_tokens", lambda token: token.digest.hex())
DEVICES: Final = Table[Device]("oauth_devices", lambda device: device.digest.hex())


class MemoryApps:
    """AppStore."""

    def __init__(self, transaction: Transaction) -> None:
        self._org = transaction.tenant.org
        self._apps = transaction.rows(APPS, EVERYWHERE)
        self._grants = transaction.rows(GRANTS, EVERYWHERE)

    async def add(self, app: App) -> None:
        await self._apps.add(app)

    async def get(self, id: str) -> App | None:
        app = self._apps.get(id)
        return app if app is not None and app.org == self._org else None

    async def all(self) -> Sequence[App]:
        return self._apps.sorted(lambda app: app.org == self._org)

    async def save(self, app: App) -> None:
        if await self.get(app.id) is not None:
            await self._apps.put(app)

    async def remove(self, id: str) -> bool:
        return await self.get(id) is not None and await self._apps.remove(id)

    async def grants(self, user: str | None = None) -> Sequence[Grant]:
        return self._grants.sorted(
            lambda grant: grant.org == self._org and grant.revoked_at is None and user in (None, grant.user)
        )

    async def grant(self, app: str, user: str) -> Grant | None:
        return next((grant for grant in await self.grants(user) if grant.app == app), None)

    async def put_grant(self, grant: Grant) -> None:
        await self._grants.put(grant)


class MemoryTokenStore:
    """TokenStore, and the proofs of its access tokens."""

    def __init__(self, store: MemoryDatabase) -> None:
        self._store = store

    async def app(self, client_id: str) -> App | None:
        return self._rows(APPS).get(client_id) or self._rows(CLIENTS).get(client_id)

    async def app_of(self, id: str) -> App | None:
        every = (*self._rows(APPS).values(), *self._rows(CLIENTS).values())
        return next((app for app in every if app.id == id), None)

    async def keep_app(self, app: App) -> App:
        known = self._rows(CLIENTS).get(app.client_id)
        kept = replace(app, id=known.id, created_at=known.created_at, used_at=known.used_at) if known else app
        self._write(CLIENTS, kept)
        return kept

    async def add_code(self, code: Code) -> None:
        self._write(CODES, code)

    async def code(self, digest: bytes) -> Code | None:
        return self._rows(CODES).get(digest.hex())

    async def token(self, digest: bytes) -> HeldToken | None:
        token = self._rows(TOKENS).get(digest.hex())
        if token is None:
            return None
        family = self._rows(FAMILIES)[token.family]
        if family.ended_at is None and self._role(family) is None:
            family = replace(family, ended_at=token.created_at, ended="revoked")
        came = [other for other in self._rows(TOKENS).values() if other.parent == digest]
        return HeldToken(token, family, any(other.used_at is not None for other in came))

    async def redeem(self, code: Code, family: Family, tokens: Collection[Token]) -> bool:
        stored = await self.code(code.digest)
        if stored is None or stored.used_at is not None:
            return False
        self._write(CODES, replace(stored, used_at=family.created_at))
        await self.issue(family, tokens)
        return True

    async def rotate(self, held: HeldToken, tokens: Collection[Token], now: datetime) -> bool:
        if await self.token(held.token.digest) != held or not held.may_refresh(now):
            return False
        for other in list(self._rows(TOKENS).values()):
            if other.parent == held.token.digest:
                self._write(TOKENS, replace(other, ended_at=other.ended_at or now))
        self._write(TOKENS, replace(held.token, used_at=held.token.used_at or now))
        for token in tokens:
            self._write(TOKENS, token)
        return True

    async def issue(self, family: Family, tokens: Collection[Token]) -> None:
        self._write(FAMILIES, family)
        for token in tokens:
            self._write(TOKENS, token)

    async def end(self, family: str, why: str, now: datetime) -> bool:
        stored = self._rows(FAMILIES).get(family)
        if stored is None or stored.ended_at is not None:
            return False
        self._write(FAMILIES, replace(stored, ended_at=now, ended=why))
        return True

    async def end_token(self, digest: bytes, now: datetime) -> None:
        token = self._rows(TOKENS).get(digest.hex())
        if token is not None and token.ended_at is None:
            self._write(TOKENS, replace(token, ended_at=now))

    async def add_device(self, device: Device) -> bool:
        if await self.device_of_user_code(device.user_code, device.created_at) is not None:
            return False
        self._write(DEVICES, device)
        return True

    async def device(self, digest: bytes) -> Device | None:
        return self._rows(DEVICES).get(digest.hex())

    async def device_of_user_code(self, digest: bytes, now: datetime) -> Device | None:
        found = (one for one in self._rows(DEVICES).values() if one.user_code == digest and one.expires_at > now)
        return next(found, None)

    async def save_poll(self, device: Device) -> None:
        stored = await self.device(device.digest)
        if stored is not None:
            self._write(DEVICES, replace(stored, polled_at=device.polled_at, interval=device.interval))

    async def decide(self, device: Device) -> bool:
        stored = await self.device(device.digest)
        if stored is None or stored.approved is not None:
            return False
        self._write(DEVICES, replace(stored, approved=device.approved, consent=device.consent))
        return True

    async def take(self, device: Device, family: Family, tokens: Collection[Token], now: datetime) -> bool:
        stored = await self.device(device.digest)
        if stored is None or not stored.approved or stored.used_at is not None:
            return False
        self._write(DEVICES, replace(stored, used_at=now))
        await self.issue(family, tokens)
        return True

    async def used(self, app: App, now: datetime) -> None:
        stored = self._rows(CLIENTS).get(app.client_id)
        if stored is not None:
            self._write(CLIENTS, replace(stored, used_at=now))

    async def purge(self, now: datetime, unused_since: datetime) -> int:
        gone = 0
        for family in [one for one in self._rows(FAMILIES).values() if one.expires_at <= now]:
            gone += self._erase(FAMILIES, family.id)
        kept = self._rows(FAMILIES).keys()
        over = [one for one in self._rows(TOKENS).values() if one.family not in kept or one.expires_at <= now]
        gone += sum(self._erase(TOKENS, token.digest.hex()) for token in over)
        codes = [one for one in self._rows(CODES).values() if one.expires_at <= now and one.family not in kept]
        gone += sum(self._erase(CODES, code.digest.hex()) for code in codes)
        devices = [one for one in self._rows(DEVICES).values() if one.expires_at <= now]
        gone += sum(self._erase(DEVICES, device.digest.hex()) for device in devices)
        live = {family.app for family in self._rows(FAMILIES).values()}
        idle = [
            app
            for app in self._rows(CLIENTS).values()
            if (app.used_at or app.created_at) < unused_since and app.id not in live
        ]
        return gone + sum(self._erase(CLIENTS, app.client_id) for app in idle)

    async def proofs(self, digests: Collection[bytes]) -> Mapping[bytes, tuple[Credential, Principal]]:
        found: dict[bytes, tuple[Credential, Principal]] = {}
        for digest in digests:
            token = self._rows(TOKENS).get(digest.hex())
            if token is not None and token.kind is TokenKind.ACCESS and (proof := self._proof(token)) is not None:
                found[digest] = proof
        return found

    def _proof(self, token: Token) -> tuple[Credential, Principal] | None:
        family = self._rows(FAMILIES)[token.family]
        org, role = self._rows(ORGS).get(family.org), self._role(family)
        if org is None or role is None:
            return None
        principal = Principal(
            tenant=Tenant(org.id, True),
            actor=Actor("app", family.app, family.user),
            via="oauth",
            role=role,
            scopes=token.scopes,
            organisation=org,
            person=family.user is not None,
            mode_fixed=False,
            audience=token.audience,
        )
        return AccessToken(token.expires_at, token.ended_at or family.ended_at), principal

    def _role(self, family: Family) -> str | None:
        """The person's role now; a machine app's is an admin's. None when app, grant or member is gone."""
        known = family.app in self._rows(APPS) or any(app.id == family.app for app in self._rows(CLIENTS).values())
        if not known or family.user is None:
            return "admin" if known else None
        grant = self._rows(GRANTS).get(family.grant or "")
        member = self._rows(MEMBERS).get(f"{family.org}/{family.user}")
        return member.role if member is not None and grant is not None and grant.revoked_at is None else None

    def _rows(self, table: Table[T]) -> dict[str, T]:
        return self._store.committed(table, EVERYWHERE)

    def _write(self, table: Table[T], row: T) -> None:
        self._store.write(table, EVERYWHERE, row)

    def _erase(self, table: Table[T], key: str) -> int:
        self._store.erase(table, EVERYWHERE, key)
        return 1
