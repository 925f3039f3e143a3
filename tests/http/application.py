"""Application on a test database, with an example area that uses all features of the pipeline."""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from adapters.argon2 import Argon2Passwords, HashCost
from adapters.http.client import GuardedClient
from adapters.oidc.provider import OidcProviders
from adapters.postgres.nodes.pool import Pool
from adapters.postgres.orgs import PostgresCredentials
from adapters.postgres.request_logs import PostgresRequestLogSink
from domain.access.model import ApiKey, Principal
from domain.access.ports import CredentialLookup
from domain.access.usecases import AccessService, KeyRequest
from domain.assistant.ports import AssistantEngine
from domain.audit.model import AuditEntry, AuditFilter
from domain.audit.ports import AuditLog
from domain.billing.ports import Payments
from domain.changes.ports import NetworkLog
from domain.comparison.ports import PdfPrinter
from domain.ingestion.ports import Connectors, FeedReaderFactory
from domain.jobs.ports import JobDispatcher
from domain.kernel.errors import Unavailable
from domain.kernel.ids import new_id
from domain.kernel.paging import PageRequest
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from domain.kernel.versions import SUPPORTED, Versions
from domain.media.ports import ImageConverter
from domain.oauth.ports import TokenStore
from domain.orgs.model import Member, MeterAllowance, Organisation, Plan
from domain.orgs.ports import OrgStore
from domain.people.model import AuthMethod, User
from domain.people.ports import PasswordHasher, People
from domain.people.usecases.sessions import ClientInfo, LinkService, SessionService
from domain.platform.ports import Incidents, PlatformChecks, SchemaCheck
from domain.probes.ports import WebClient
from domain.request_logs.model import RequestLog
from domain.request_logs.ports import RequestLogSink
from domain.secrets.keys import ActiveKeys, derive_hash_key
from domain.secrets.model import KeyRing
from domain.sso.ports import DnsResolver, IdentityProviders
from domain.sso.usecases.rules import SsoRules
from domain.webhooks.ports import Sender
from entrypoints.api.app import create_app
from entrypoints.areas.registry import AREAS
from entrypoints.container import create_dependencies
from entrypoints.dependencies import Dependencies, ReadinessChecks, WaitingRequestCounter
from entrypoints.http.pressure import NEVER_SHED, LoadThresholds
from entrypoints.operations.operation import Area
from entrypoints.settings import Settings
from ports.clock import Clock
from ports.language_models import LanguageModels
from ports.limits import RateLimitBucket, RateLimits, TakeResult
from ports.objects import ObjectStore
from ports.parsing import ParserRunner
from ports.telemetry import Tracing
from ports.unit_of_work import UnitOfWork
from ports.workspaces import Workspaces
from tests.http import example_area
from tests.http.browser import ConsoleBrowser
from tests.http.client import Client
from tests.support.identity_provider import FakeProvider
from tests.support.memory.clock import SettableClock
from tests.support.memory.hosts import MemoryNameRecords
from tests.support.memory.printer import MemoryPrinter
from tests.support.settable_database import DatabaseClock, SettableDatabase, settable_database

SECRET = b"a secret of at least thirty-two characters"
BASE = "https://api.joinery.test"
DOCS = "https://docs.joinery.test"
_ABSENT = (
    ObjectStore,
    Connectors,
    FeedReaderFactory,
    Workspaces,
    GuardedClient,
    Sender,
    ImageConverter,
    ParserRunner,
)
_TYPES_BY_NAME: Mapping[str, Any] = {
    "clock": Clock,
    "connectors": Connectors,
    "dispatch": JobDispatcher,
    "engine": AssistantEngine | None,
    "feed_readers": FeedReaderFactory,
    "limits": RateLimits,
    "models": LanguageModels | None,
    "objects": ObjectStore,
    "parsers": ParserRunner,
    "payments": Payments | None,
    "printer": PdfPrinter,
    "readiness": ReadinessChecks,
    "request_logs": RequestLogSink,
    "schema": SchemaCheck,
    "sender": Sender,
    "tracing": Tracing | None,
    "uow": UnitOfWork,
    "web": WebClient,
    "workspaces": Workspaces,
}
OPERATOR = AuditContext(Actor("service", "operator"), "tests")


def create_active_keys() -> ActiveKeys:
    """Create the keys of a process that has the secret."""
    keys = ActiveKeys([SECRET.decode()])
    keys.use_key_ring(KeyRing(derive_hash_key(SECRET.decode())), SECRET.decode(), datetime.now(UTC))
    return keys


def create_plan(code: str, tier: str, *features: str) -> Plan:
    """Create a plan."""
    return Plan(code, code.title(), tier, "usd", 9900, frozenset(features), {"sources": MeterAllowance(10, 1, 500)})


class BucketLimits:
    """Rate limits by token buckets on the test's clock."""

    def __init__(self, clock: SettableClock) -> None:
        self._clock = clock
        self._levels: dict[str, tuple[float, datetime]] = {}

    async def take_token(self, limit: RateLimitBucket) -> TakeResult:
        now = self._clock.now()
        level, then = self._levels.get(limit.key, (float(limit.burst), now))
        level = min(float(limit.burst), level + (now - then).total_seconds() * limit.rate)
        allowed = level >= 1
        level -= 1 if allowed else 0
        self._levels[limit.key] = (level, now)
        return TakeResult(allowed, int(level), (limit.burst - level) / limit.rate, max(0.0, (1 - level) / limit.rate))


class CountingCredentials(PostgresCredentials):
    """Credential lookup that counts its calls and can change the principals that it returns."""

    def __init__(self, pool: Pool) -> None:
        super().__init__(pool)
        self.changed: dict[str, dict[str, Any]] = {}
        """Fields of a principal to change, by key id."""
        self.lookups = 0
        self.down = False
        self.lost: set[str] = set()
        """IDs of keys without any scope."""

    async def find_keys(self, digests: Collection[bytes]) -> Mapping[bytes, tuple[ApiKey, Principal]]:
        self.lookups += 1
        if self.down:
            raise Unavailable
        found = await super().find_keys(digests)
        return {digest: (key, self._apply_changes(key, principal)) for digest, (key, principal) in found.items()}

    def _apply_changes(self, key: ApiKey, principal: Principal) -> Principal:
        lost: dict[str, Any] = {"scopes": frozenset()} if key.id in self.lost else {}
        return replace(principal, **self.changed.get(key.id, {}), **lost)


class SwitchableSink(PostgresRequestLogSink):
    """Request log sink that can fail on demand and records what it receives."""

    def __init__(self, pool: Pool) -> None:
        super().__init__(pool)
        self.down = False
        self.written: list[RequestLog] = []

    async def write(self, logs: Sequence[RequestLog]) -> Sequence[RequestLog]:
        if self.down:
            raise ConnectionError("the database is down")
        self.written.extend(logs)
        return await super().write(logs)


async def list_audit_entries(application: "ApplicationHarness", tenant: Tenant, id: str) -> list[AuditEntry]:
    """List the audit entries of a resource, oldest first."""
    async with application.uow.begin_reading(tenant) as tx:
        page = await tx[AuditLog].page(PageRequest(100), AuditFilter(target=id))
    return list(page.items[::-1])


@dataclass
class ApplicationHarness:
    """Running application with access to its parts."""

    database: SettableDatabase
    clock: SettableClock
    app: Any = None
    dependencies: Any = None
    uow: Any = None
    access: Any = None
    people: Any = None
    links: Any = None
    sessions: Any = None
    passwords: Any = None
    """Password hasher; by default Argon2 at the lowest cost."""
    token_store: Any = None
    keys: Any = None
    credentials: Any = None
    limits: Any = None
    sink: Any = None
    network: Any = None
    """Network logs, which are empty unless a test writes events."""
    checks: Any = None
    incidents: Any = None
    sso_rules: Any = None
    name_records: MemoryNameRecords = field(default_factory=MemoryNameRecords)
    provider: FakeProvider = field(default_factory=FakeProvider)
    waiting_requests: int = 0
    orgs: dict[str, Organisation] = field(default_factory=dict)

    async def create_organisation(self, name: str, plan: Plan, kind: str = "retailer") -> Organisation:
        """Create an organisation."""
        made = Organisation(
            new_id("org"), name, kind, plan, None, (new_id("cat"), new_id("cat")), self.clock.now() - timedelta(days=9)
        )
        self.database.save_plan(plan)
        self.database.add_organisation(made)
        self.orgs[name] = made
        return made

    async def create_key(self, org: Organisation, *, livemode: bool = True, **fields: Any) -> tuple[ApiKey, str]:
        """Create an API key; return it with its secret."""
        async with self.uow.begin(Tenant(org.id, livemode), OPERATOR) as tx:
            made: tuple[ApiKey, str] = await self.access.create_key(tx, KeyRequest("tests", **fields))
        return made

    async def create_client(self, name: str = "Fjord", *, livemode: bool = True, **fields: Any) -> Client:
        """Create a client with a new key of that organisation."""
        _, secret = await self.create_key(self.orgs[name], livemode=livemode, **fields)
        return Client(self.app, secret)

    async def open_browser(
        self, name: str | None = "Fjord", role: str = "owner", person: str = "Ada Moreau"
    ) -> ConsoleBrowser:
        """Sign in a new person; with `name`, the person is a member of that organisation."""
        email = f"{new_id('usr')[4:].lower()}@fjord.test"
        user = await self.people.add(User(new_id("usr"), email, person, self.clock.now(), self.clock.now()))
        if name is not None:
            await self.add_member(user, name, role)
        _, cookie = await self.sessions.start(user, [AuthMethod.PASSWORD], ClientInfo("203.0.113.7"))
        return ConsoleBrowser(self.app, cookie, user)

    async def add_member(self, user: User, name: str, role: str = "owner") -> None:
        """Add the user as a member."""
        org = self.orgs[name].id
        async with self.uow.begin(Tenant(org, True), OPERATOR) as tx:
            await tx[OrgStore].add_member(Member(user.id, org, user.email, role, self.clock.now()))

    async def remove_member(self, user: User, name: str) -> None:
        """Remove a member from an organisation."""
        async with self.uow.begin(Tenant(self.orgs[name].id, True), OPERATOR) as tx:
            await tx[OrgStore].remove_member(user.id)

    def build_client(self, secret: str | None = None) -> Client:
        """Build a client with the given credential or without any."""
        return Client(self.app, secret)


def create_settings(**changes: Any) -> Settings:
    """Return settings for tests; `files.internal` and `receiver.internal` may be private hosts."""
    values: dict[str, Any] = {
        "database_url": "",
        "redis_url": None,
        "objects_url": "",
        "secret": SECRET.decode(),
        "base_url": BASE,
        "docs_url": DOCS,
        "mail_domain": "in.joinery.test",
        "allow_private_hosts": frozenset({"files.internal", "receiver.internal", "127.0.0.1:9000"}),
    }
    return Settings(**values | changes)


def _create_dependencies(application: ApplicationHarness, settings: Settings) -> Dependencies:
    """Create the dependencies of the API process on the test's database and clock, without access to other hosts or processes."""
    made = create_dependencies(settings)
    given = {
        Clock: application.clock,
        ActiveKeys: create_active_keys(),
        RateLimits: BucketLimits(application.clock),
        PasswordHasher: application.passwords or Argon2Passwords(HashCost(1, 8)),
        DnsResolver: application.name_records,
        IdentityProviders: OidcProviders(application.provider, now=lambda: application.clock.now().timestamp()),
        WaitingRequestCounter: lambda: application.waiting_requests,
    } | dict.fromkeys(_ABSENT)
    given |= {ParserRunner: asyncio.to_thread, PdfPrinter: MemoryPrinter(), ReadinessChecks: {}}
    for kind, part in given.items():
        made[kind] = part
    made[CredentialLookup], made[RequestLogSink] = CountingCredentials(made[Pool]), SwitchableSink(made[Pool])
    return made


@asynccontextmanager
async def run_application(
    *,
    areas: Sequence[Area] = (*AREAS, example_area.AREA),
    versions: Versions = SUPPORTED,
    thresholds: LoadThresholds = LoadThresholds(lag=NEVER_SHED.lag),
    passwords: Any = None,
    settings: Settings = create_settings(),
    **changes: Any,
) -> AsyncIterator[ApplicationHarness]:
    """Run the application; `changes` are dependencies by the names above."""
    database = await settable_database()
    database.clear()
    application = ApplicationHarness(database, DatabaseClock(database), passwords=passwords)
    application.dependencies = container = _create_dependencies(
        application, replace(settings, database_url=database.address)
    )
    for name, part in changes.items():
        container[_TYPES_BY_NAME[name]] = part
    application.uow, application.access, application.people = (
        container[UnitOfWork],
        container[AccessService],
        container[People],
    )
    application.sessions, application.links, application.keys = (
        container[SessionService],
        container[LinkService],
        container[ActiveKeys],
    )
    application.limits, application.token_store, application.network = (
        container[RateLimits],
        container[TokenStore],
        container[NetworkLog],
    )
    application.credentials, application.sink, application.sso_rules = (
        container[CredentialLookup],
        container[RequestLogSink],
        container[SsoRules],
    )
    application.checks, application.incidents = container[PlatformChecks], container[Incidents]
    application.app = create_app(application.dependencies, areas, thresholds=thresholds, versions=versions)
    await application.create_organisation("Fjord", create_plan("standard", "standard"))
    await application.create_organisation("Oak", create_plan("standard", "standard"))
    await application.create_organisation("Elm", create_plan("high", "high", "bulk_exports", "stream"))
    try:
        async with application.app.test_app():
            example_area.reset()
            yield application
    finally:
        await container[Pool].close()
