"""Everything that use cases and engines are made of, as one value: made once a process, handed on whole."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from adapters.wire.cursors import FeedCursors
from domain.access.usecases import AccessService
from domain.changes.usecases.tailing import LogTailer
from domain.outbox.usecases.outgoing_mail import OutgoingMail
from domain.people.usecases.accounts import Accounts
from domain.people.usecases.links import LinkService
from domain.people.usecases.sessions import SessionService
from domain.secrets.keys import WorkingKeys
from domain.secrets.usecases.keyring import Keyring
from domain.sso.usecases.proving import DomainProofs
from domain.sso.usecases.rules import SsoRules
from domain.sso.usecases.settings import SsoSettings
from domain.sso.usecases.signing_in import SsoSignIn
from entrypoints.settings import Settings
from ports.clock import Clock
from ports.codec import Codec
from ports.connectors import Connectors
from ports.events import EventReader, EventRendering
from ports.exports import ExportUpkeep
from ports.feed_readers import FeedReaders
from ports.idempotency import IdempotencyMaintenance
from ports.identity_providers import IdentityProviders
from ports.images import ImageConverter, ImageFetcher
from ports.jobs import Dispatch
from ports.limits import Limits
from ports.maintenance import Maintenance
from ports.match_index import MatchBacklog
from ports.metrics import Collect, MetricsExport
from ports.models import Models
from ports.oauth import GrantRules, TokenStore
from ports.objects import Objects
from ports.orgs import Memberships
from ports.parsing import ParserRunner
from ports.people import People
from ports.platform import Incidents, Instances, OperatingFiguresReader, PlatformChecks, SchemaCheck
from ports.request_logs import RequestLogSink
from ports.schemas import Schemas
from ports.secrets import SealedValues, Vault
from ports.signals import Signals
from ports.sources import SourceSchedule
from ports.storage import StorageUpkeep
from ports.tracing import Tracing
from ports.unit_of_work import UnitOfWork
from ports.usage import UsageUpkeep
from ports.web import Documents, Web
from ports.webhooks import DeliveryLog, DeliveryPlaces, Sender
from ports.workload import Workload
from ports.workspaces import Workspaces

Readiness = Callable[[], Awaitable[bool]]
"""Whether one dependency answers; raising counts as no."""


def nobody_waits() -> int:
    """For stores without a connection pool."""
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sso:
    """Single sign-on: setting it up, proving domains, who has to come in by it, and coming in."""

    settings: SsoSettings
    proofs: DomainProofs
    rules: SsoRules
    providers: IdentityProviders
    sign_in: SsoSignIn


def callback_of(settings: Settings) -> str:
    """Where identity providers send browsers back to; the organisation's id follows."""
    return f"{settings.base_url}/console/sso/callback/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependencies:
    """`waiting` tells how many requests wait for a database connection, `readiness` what /readyz asks by name.

    `models` is None where the operator has configured none to be asked, `tracing` and
    `metrics_export` where no collector is named.
    """

    settings: Settings
    clock: Clock
    uow: UnitOfWork
    memberships: Memberships
    access: AccessService
    people: People
    sessions: SessionService
    token_store: TokenStore
    grant_rules: GrantRules
    links: LinkService
    outgoing_mail: OutgoingMail
    accounts: Accounts
    sso: Sso
    limits: Limits
    vault: Vault
    keys: WorkingKeys
    keyring: Keyring
    sealed_values: SealedValues
    objects: Objects
    connectors: Connectors
    schemas: Schemas
    codec: Codec
    feed_readers: FeedReaders
    workspaces: Workspaces
    events: EventReader
    event_rendering: EventRendering
    tailer: LogTailer
    feed_cursors: FeedCursors
    signals: Signals
    dispatch: Dispatch
    source_schedule: SourceSchedule
    request_logs: RequestLogSink
    match_backlog: MatchBacklog
    platform_checks: PlatformChecks
    incidents: Incidents
    idempotency: IdempotencyMaintenance
    maintenance: Maintenance
    storage: StorageUpkeep
    usage: UsageUpkeep
    workload: Workload
    exports: ExportUpkeep
    delivery_log: DeliveryLog
    delivery_places: DeliveryPlaces
    sender: Sender
    web: Web
    documents: Documents
    parsers: ParserRunner
    image_fetcher: ImageFetcher
    image_converter: ImageConverter
    models: Models | None = None
    schema: SchemaCheck | None = None
    instances: Instances | None = None
    figures: OperatingFiguresReader | None = None
    tracing: Tracing | None = None
    metrics_export: Callable[[Collect], MetricsExport] | None = None
    waiting: Callable[[], int] = nobody_waits
    readiness: Mapping[str, Readiness] = field(default_factory=dict)
