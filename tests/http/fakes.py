"""The whole edge on memory adapters, with a toy area that shows every behaviour of the pipeline."""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from adapters.aesgcm.vault import AesGcmVault
from adapters.argon2.passwords import Argon2Passwords, Cost
from adapters.authlib.rules import AuthlibRules
from adapters.memory.access import MemoryCredentials
from adapters.memory.clock import SettableClock
from adapters.memory.events import MemoryEventReader
from adapters.memory.factors import MemoryFactors, MemoryPasskeys
from adapters.memory.match_index import MemoryMatchBacklog
from adapters.memory.names import MemoryNameRecords
from adapters.memory.network import MemoryNetworkLog
from adapters.memory.oauth import MemoryTokenStore
from adapters.memory.orgs import MemoryMemberships, MemoryOrgRegistry
from adapters.memory.outbox import MemoryOutbox
from adapters.memory.people import MemoryOneTimeLinks, MemoryPeople, MemorySessions
from adapters.memory.platform import MemoryIncidents, MemoryPlatformChecks
from adapters.memory.request_logs import MemoryRequestLogSink
from adapters.memory.signals import MemorySignals
from adapters.memory.sso import MemorySsoDirectory
from adapters.memory.table import MemoryDatabase
from adapters.memory.unit_of_work import MemoryUnitOfWork
from adapters.memory.workload import MemoryWorkload
from adapters.oidc.provider import OidcProviders
from adapters.totp.one_time_codes import TotpCodes
from adapters.webauthn.passkeys import WebauthnCeremonies
from adapters.wire.catalogue import WireRendering
from adapters.wire.cursors import FeedCursors
from adapters.wire.events import WireEventRendering
from adapters.zxcvbn.guesses import ZxcvbnGuesses
from domain.access.model import ApiKey, Principal
from domain.access.usecases import AccessService, KeyRequest
from domain.changes.usecases.tailing import LogTailer
from domain.kernel.errors import Unavailable
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from domain.kernel.versions import SUPPORTED, Versions
from domain.orgs.model import Member, Meter, Organisation, Plan
from domain.orgs.ports import OrgStore
from domain.outbox.usecases.outgoing_mail import OutgoingMail
from domain.people.model import Method, User
from domain.people.usecases.accounts import Accounts, Technology, accounts_of
from domain.people.usecases.links import LinkService
from domain.people.usecases.sessions import SessionService, Visitor
from domain.request_logs.model import RequestLog
from domain.secrets.keys import WorkingKeys, hash_key
from domain.secrets.model import KeyRing
from domain.sso.usecases.proving import DomainProofs
from domain.sso.usecases.rules import SsoRules
from domain.sso.usecases.settings import SsoSettings
from domain.sso.usecases.signing_in import SsoSignIn
from entrypoints.api.app import create_app
from entrypoints.areas.registry import AREAS
from entrypoints.dependencies import Dependencies, Sso, callback_of
from entrypoints.http.pressure import CALM, Thresholds
from entrypoints.operations.operation import Area
from entrypoints.operations.validation import SchemaFaults
from entrypoints.settings import Settings
from ports.limits import Budget, Take
from tests.http import toys
from tests.http.browser import Browser
from tests.http.client import Client
from tests.support.identity_provider import FakeProvider

SECRET = b"a secret of at least thirty-two characters"
BASE = "https://api.joinery.test"
DOCS = "https://docs.joinery.test"
OPERATOR = AuditContext(Actor("service", "operator"), "tests")


def working_keys() -> WorkingKeys:
    """The keys of a process that knows the one secret."""
    keys = WorkingKeys([SECRET.decode()])
    keys.use(KeyRing(hash_key(SECRET.decode())), SECRET.decode(), datetime.now(UTC))
    return keys


def plan_of(code: str, tier: str, *features: str) -> Plan:
    """A plan."""
    return Plan(code, code.title(), tier, "usd", 9900, frozenset(features), {"sources": Meter(10, 1, 500)})


class BucketLimits:
    """Limits: real token buckets on the test's clock."""

    def __init__(self, clock: SettableClock) -> None:
        self._clock = clock
        self._levels: dict[str, tuple[float, datetime]] = {}

    async def take(self, budget: Budget) -> Take:
        now = self._clock.now()
        level, then = self._levels.get(budget.key, (float(budget.burst), now))
        level = min(float(budget.burst), level + (now - then).total_seconds() * budget.rate)
        allowed = level >= 1
        level -= 1 if allowed else 0
        self._levels[budget.key] = (level, now)
        return Take(allowed, int(level), (budget.burst - level) / budget.rate, max(0.0, (1 - level) / budget.rate))


class CountingCredentials(MemoryCredentials):
    """Credentials that count how often they are asked, and may know further principals."""

    def __init__(self, store: MemoryDatabase) -> None:
        super().__init__(store)
        self.asked = 0
        self.changed: dict[str, dict[str, Any]] = {}
        """Fields of a principal to change, by key id."""
        self.looked = 0
        self.down = False
        self.lost: set[str] = set()
        """Keys that may do nothing any more, by id."""

    async def keys(self, digests: Collection[bytes]) -> Mapping[bytes, tuple[ApiKey, Principal]]:
        self.looked += 1
        if self.down:
            raise Unavailable
        found = await super().keys(digests)
        return {
            digest: (key, replace(principal, scopes=frozenset()) if key.id in self.lost else principal)
            for digest, (key, principal) in found.items()
        }

    async def key(self, digest: bytes) -> tuple[ApiKey, Principal] | None:
        self.asked += 1
        found = await super().key(digest)
        if found is None:
            return None
        return found[0], replace(found[1], **self.changed.get(found[0].id, {}))


class SwitchableSink(MemoryRequestLogSink):
    """A sink that can be told to fail, and keeps what it was given."""

    def __init__(self, store: MemoryDatabase) -> None:
        super().__init__(store)
        self.down = False
        self.written: list[RequestLog] = []

    async def write(self, logs: Sequence[RequestLog]) -> Sequence[RequestLog]:
        if self.down:
            raise ConnectionError("the database is down")
        self.written.extend(logs)
        return await super().write(logs)


@dataclass
class World:
    """One running application and handles on all that is behind it."""

    clock: SettableClock = field(default_factory=SettableClock)
    store: MemoryDatabase = field(default_factory=MemoryDatabase)
    app: Any = None
    dependencies: Any = None
    uow: Any = None
    access: Any = None
    people: Any = None
    links: Any = None
    sessions: Any = None
    passwords: Any = None
    """What hashes passwords; Argon2 at the least cost unless given."""
    token_store: Any = None
    keys: Any = None
    credentials: Any = None
    limits: Any = None
    sink: Any = None
    network: Any = None
    """The network's logs, which nobody fills unless a test does."""
    checks: Any = None
    incidents: Any = None
    sso_rules: Any = None
    names: MemoryNameRecords = field(default_factory=MemoryNameRecords)
    provider: FakeProvider = field(default_factory=FakeProvider)
    waiting: int = 0
    orgs: dict[str, Organisation] = field(default_factory=dict)

    async def org(self, name: str, plan: Plan, kind: str = "retailer") -> Organisation:
        """A new organisation."""
        made = Organisation(
            new_id("org"), name, kind, plan, None, (new_id("cat"), new_id("cat")), self.clock.now() - timedelta(days=9)
        )
        await MemoryOrgRegistry(self.store).create(made)
        self.orgs[name] = made
        return made

    async def key(self, org: Organisation, *, livemode: bool = True, **asked: Any) -> tuple[ApiKey, str]:
        """A new API key and its secret."""
        async with self.uow.begin(Tenant(org.id, livemode), OPERATOR) as tx:
            made: tuple[ApiKey, str] = await self.access.issue_key(tx, KeyRequest("tests", **asked))
        return made

    async def client(self, name: str = "Fjord", *, livemode: bool = True, **asked: Any) -> Client:
        """A client with a fresh key of that organisation."""
        _, secret = await self.key(self.orgs[name], livemode=livemode, **asked)
        return Client(self.app, secret)

    async def browser(self, name: str | None = "Fjord", role: str = "owner", person: str = "Ada Moreau") -> Browser:
        """A browser in which a new person is signed in; a member of that organisation, if any is named."""
        email = f"{new_id('usr')[4:].lower()}@fjord.test"
        user = await self.people.add(User(new_id("usr"), email, person, self.clock.now(), self.clock.now()))
        if name is not None:
            await self.join(user, name, role)
        _, cookie = await self.sessions.begin(user, [Method.PASSWORD], Visitor("203.0.113.7"))
        return Browser(self.app, cookie, user)

    async def join(self, user: User, name: str, role: str = "owner") -> None:
        """Make somebody a member."""
        org = self.orgs[name].id
        async with self.uow.begin(Tenant(org, True), OPERATOR) as tx:
            await tx[OrgStore].add_member(Member(user.id, org, user.email, role, self.clock.now()))

    def stranger(self, secret: str | None = None) -> Client:
        """A client without a credential, or with that one."""
        return Client(self.app, secret)


def settings(**changes: Any) -> Settings:
    """What the process is told from outside; `files.internal` and `receiver.internal` may be private hosts."""
    told: dict[str, Any] = {
        "database_url": "",
        "redis_url": None,
        "objects_url": "",
        "secret": SECRET.decode(),
        "base_url": BASE,
        "docs_url": DOCS,
        "mail_domain": "in.joinery.test",
        "allow_private_hosts": frozenset({"files.internal", "receiver.internal", "127.0.0.1:9000"}),
    }
    return Settings(**told | changes)


def accounts(world: World, links: LinkService, mail: OutgoingMail, base_url: str) -> Accounts:
    """Real hashes, codes and ceremonies, at the least cost."""
    by = Technology(
        passwords=world.passwords or Argon2Passwords(Cost(1, 8)),
        guesses=ZxcvbnGuesses(),
        codes=TotpCodes(),
        ceremonies=WebauthnCeremonies(base_url),
        limits=world.limits,
        vault=AesGcmVault(SECRET.decode()),
        clock=world.clock,
        base_url=base_url,
    )
    stores = MemoryFactors(world.store), MemoryPasskeys(world.store)
    return accounts_of(world.people, *stores, world.sessions, links, world.access, mail, by)


def dependencies(world: World, **changes: Any) -> Dependencies:
    """Everything on memory adapters; what only workers and the scheduler need is left out."""
    signals, rendering, nothing = MemorySignals(), WireEventRendering(), cast("Any", None)
    world.store.listeners.append(signals.notify)
    events = MemoryEventReader(world.store, rendering)
    links = LinkService(world.links, world.access, world.clock)
    mail = OutgoingMail(MemoryOutbox(world.store), AesGcmVault(SECRET.decode()), world.clock)
    made: dict[str, Any] = {
        "settings": settings(),
        "clock": world.clock,
        "uow": world.uow,
        "memberships": MemoryMemberships(world.store),
        "access": world.access,
        "people": world.people,
        "sessions": world.sessions,
        "links": links,
        "outgoing_mail": mail,
        "accounts": accounts(world, links, mail, changes.get("settings", settings()).base_url),
        "token_store": world.token_store,
        "grant_rules": AuthlibRules(BASE, world.access.digest),
        "sso": _sso(world),
        "limits": world.limits,
        "vault": AesGcmVault(SECRET.decode()),
        "objects": nothing,
        "connectors": nothing,
        "schemas": SchemaFaults(),
        "codec": nothing,
        "feed_readers": nothing,
        "workspaces": nothing,
        "events": events,
        "event_rendering": rendering,
        "tailer": LogTailer(events, rendering, signals),
        "keys": world.keys,
        "keyring": nothing,
        "sealed_values": nothing,
        "feed_cursors": FeedCursors(world.keys.cursors),
        "signals": signals,
        "dispatch": nothing,
        "source_schedule": nothing,
        "request_logs": world.sink,
        "platform_checks": world.checks,
        "incidents": world.incidents,
        "match_backlog": MemoryMatchBacklog(world.store, world.clock),
        "idempotency": nothing,
        "maintenance": nothing,
        "storage": nothing,
        "usage": nothing,
        "workload": MemoryWorkload(world.store, world.clock),
        "exports": nothing,
        "delivery_log": nothing,
        "delivery_places": nothing,
        "sender": nothing,
        "web": nothing,
        "documents": nothing,
        "parsers": asyncio.to_thread,
        "image_fetcher": nothing,
        "image_converter": nothing,
        "waiting": lambda: world.waiting,
    }
    return Dependencies(**made | changes)


def _sso(world: World) -> Sso:
    """Single sign-on over a provider and a name system that tests fill."""
    directory, vault = MemorySsoDirectory(world.store), AesGcmVault(SECRET.decode())
    asked, callback = OidcProviders(world.provider, now=lambda: world.clock.now().timestamp()), callback_of(settings())
    return Sso(
        settings=SsoSettings(vault),
        proofs=DomainProofs(world.names, directory, world.clock),
        rules=world.sso_rules,
        providers=asked,
        sign_in=SsoSignIn(world.uow, directory, world.people, asked, vault, world.clock, callback),
    )


@asynccontextmanager
async def running(
    *,
    areas: Sequence[Area] = (*AREAS, toys.AREA),
    versions: Versions = SUPPORTED,
    thresholds: Thresholds = Thresholds(lag=CALM.lag),
    passwords: Any = None,
    **changes: Any,
) -> AsyncIterator[World]:
    """A world whose application is serving; `changes` are fields of Dependencies."""
    world = World(passwords=passwords)
    world.clock.set(datetime(2026, 11, 20, 13, 8, tzinfo=UTC))
    world.uow = MemoryUnitOfWork(world.store, world.clock, WireRendering())
    world.credentials = CountingCredentials(world.store)
    world.keys = working_keys()
    world.links, world.people = MemoryOneTimeLinks(), MemoryPeople(world.store)
    kept = MemorySessions(world.store, world.links)
    world.token_store = MemoryTokenStore(world.store)
    world.access = AccessService(world.credentials, world.keys, {b"p": kept, b"a": world.token_store})
    world.sso_rules = SsoRules(world.uow, MemorySsoDirectory(world.store), kept)
    world.sessions = SessionService(kept, MemoryMemberships(world.store), world.access, world.clock, world.sso_rules)
    world.limits = BucketLimits(world.clock)
    world.sink = SwitchableSink(world.store)
    world.checks, world.incidents = MemoryPlatformChecks(), MemoryIncidents()
    world.network = MemoryNetworkLog(world.store, WireEventRendering(), world.clock)
    world.dependencies = dependencies(world, **changes)
    world.app = create_app(world.dependencies, areas, thresholds=thresholds, versions=versions)
    await world.org("Fjord", plan_of("standard", "standard"))
    await world.org("Oak", plan_of("standard", "standard"))
    await world.org("Elm", plan_of("high", "high", "bulk_exports", "stream"))
    async with world.app.test_app():
        toys.reset()
        yield world
