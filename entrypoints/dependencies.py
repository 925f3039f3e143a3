"""Everything that use cases and engines are made of, as one value: made once a process, handed on whole."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from adapters.wire.cursors import FeedCursors
from domain.access.usecases import AccessService
from domain.changes.ports import EventReader, EventRendering
from domain.changes.usecases.tailing import LogTailer
from domain.exports.ports import ExportUpkeep
from domain.ingestion.ports import Connectors, FeedReaders
from domain.jobs.ports import Dispatch
from domain.matching.ports import MatchBacklog
from domain.media.ports import ImageConverter, ImageFetcher
from domain.oauth.ports import GrantRules, TokenStore
from domain.orgs.ports import Memberships
from domain.outbox.usecases.outgoing_mail import OutgoingMail
from domain.people.ports import People
from domain.people.usecases.accounts import Accounts
from domain.people.usecases.sessions import LinkService, SessionService
from domain.platform.ports import Incidents, Instances, OperatingFiguresReader, PlatformChecks, SchemaCheck, Workload
from domain.probes.ports import Documents, Web
from domain.request_logs.ports import RequestLogSink
from domain.secrets.keys import WorkingKeys
from domain.secrets.ports import SealedValues, Vault
from domain.secrets.usecases.keyring import Keyring
from domain.sources.ports import SourceSchedule
from domain.sso.ports import IdentityProviders
from domain.sso.usecases.proving import DomainProofs
from domain.sso.usecases.rules import SsoRules
from domain.sso.usecases.settings import SsoSettings
from domain.sso.usecases.signing_in import SsoSignIn
from domain.storage.ports import StorageUpkeep
from domain.usage.ports import UsageUpkeep
from domain.webhooks.ports import DeliveryLog, DeliveryPlaces, Sender
from entrypoints.settings import Settings
from ports.clock import Clock
from ports.codec import Codec
from ports.limits import Limits
from ports.maintenance import Maintenance
from ports.models import Models
from ports.objects import Objects
from ports.parsing import ParserRunner
from ports.schemas import Schemas
from ports.signals import Signals
from ports.telemetry import Collect, MetricsExport, Tracing
from ports.unit_of_work import UnitOfWork
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
