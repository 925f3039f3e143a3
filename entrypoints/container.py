"""Composition root: the adapters of all ports, for every kind of process."""

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from adapters.aesgcm import AesGcmVault
from adapters.api_json.catalogue import JsonCatalogueRendering
from adapters.api_json.codec import JsonCodec
from adapters.api_json.events import JsonEventRendering
from adapters.api_json.webhooks import JsonPayloadRendering
from adapters.argon2 import Argon2Passwords
from adapters.authlib.grant_rules import AuthlibGrantRules
from adapters.dns import DnsRecords
from adapters.files.workspaces import FileWorkspaces
from adapters.http.client import GuardedClient
from adapters.http.images import HttpImages
from adapters.http.sender import HttpSender
from adapters.http.web import HttpWeb
from adapters.markup.documents import MarkupDocuments
from adapters.pluggy.host import PluggyConnectors, load_connectors
from adapters.postgres.agreements import PostgresAgreementRegistry
from adapters.postgres.assistant import PostgresAssistantUpkeep
from adapters.postgres.billing import PostgresBillingRegistry, PostgresPriceRegistry
from adapters.postgres.brand import PostgresBrandRegistry
from adapters.postgres.comparison import PostgresComparisonUpkeep
from adapters.postgres.credits import PostgresCreditRateRegistry, PostgresCreditUpkeep
from adapters.postgres.demand import PostgresDemandUpkeep
from adapters.postgres.event_log import PostgresNetworkLog
from adapters.postgres.event_reader import PostgresEventReader
from adapters.postgres.jobs import PostgresDispatch
from adapters.postgres.locks import PostgresShards
from adapters.postgres.maintenance import PostgresMaintenance, PostgresPurgeGuard
from adapters.postgres.matching import PostgresMatchBacklog
from adapters.postgres.notifications import PostgresNotificationUpkeep
from adapters.postgres.oauth import PostgresTokenStore
from adapters.postgres.orgs import PostgresCredentials, PostgresMemberships, PostgresOrgRegistry, PostgresSsoDirectory
from adapters.postgres.people import (
    PostgresFactors,
    PostgresOneTimeLinks,
    PostgresOutbox,
    PostgresPasskeys,
    PostgresPeople,
    PostgresSessions,
)
from adapters.postgres.platform import (
    PostgresIncidents,
    PostgresInstances,
    PostgresPlatformChecks,
    PostgresWorkload,
    PostgresWorkloadMetrics,
)
from adapters.postgres.proposals import PostgresProposalUpkeep
from adapters.postgres.request_logs import PostgresRequestLogSink
from adapters.postgres.runs import PostgresExportMaintenance, PostgresScheduledExportMaintenance
from adapters.postgres.schema_migrations import PostgresSchemaCheck
from adapters.postgres.secrets import PostgresEncryptedValues, PostgresKeyRingStore
from adapters.postgres.signals import PostgresSignals
from adapters.postgres.sources import PostgresInboundAddresses, PostgresSourceSchedule
from adapters.postgres.storage import PostgresStorageMaintenance
from adapters.postgres.unit_of_work import PostgresUnitOfWork
from adapters.postgres.usage import PostgresUsageMaintenance
from adapters.postgres.webhook_deliveries import PostgresDeliveryNodes, PostgresDeliveryStore
from adapters.processes.calls import ProcessCalls, ProcessImageConverter
from adapters.processes.feed_readers import ProcessFeedReaders
from adapters.processes.pdf import ProcessPdfPrinter
from adapters.totp import TotpCodes
from adapters.webauthn import WebauthnCeremonies
from adapters.zxcvbn import ZxcvbnEstimator
from connectors.sdk.context import HttpClient
from domain.access.ports import CredentialLookup
from domain.agreements.ports import AgreementRegistry
from domain.agreements.usecases.publication import AgreementPublisher
from domain.assistant.ports import AssistantUpkeep
from domain.billing.ports import BillingRegistry, PriceRegistry
from domain.brand.ports import BrandRegistry
from domain.catalogue.ports import CatalogueRenderer
from domain.changes.ports import EventReader, EventRendering, NetworkLog
from domain.comparison.ports import ComparisonUpkeep, PdfPrinter
from domain.credits.ports import CreditRateRegistry, CreditUpkeep
from domain.demand.ports import DemandUpkeep
from domain.exports.ports import ExportUpkeep, ScheduledExportUpkeep
from domain.ingestion.ports import FeedReaderFactory
from domain.jobs.ports import JobDispatcher
from domain.kernel.clock import CLOCK
from domain.mail.ports import InboundAddresses
from domain.matching.ports import MatchBacklogReader
from domain.media.ports import ImageConverter, ImageFetcher
from domain.notifications.ports import NotificationTexts, NotificationUpkeep
from domain.notifications.usecases.rules import NotificationRuleService
from domain.notifications.usecases.sending import ReceiverClient
from domain.oauth.ports import OAuthProtocol, TokenStore
from domain.orgs.ports import Memberships, OrgRegistry
from domain.outbox.ports import Outbox
from domain.people.ports import (
    Factors,
    GuessEstimator,
    OneTimeCodes,
    OneTimeLinks,
    PasskeyCeremonies,
    Passkeys,
    PasswordHasher,
    People,
    Sessions,
    SignInRules,
)
from domain.people.usecases.invitations import InvitationService
from domain.people.usecases.notices import SecurityNotifier
from domain.people.usecases.passwords import PasswordService
from domain.platform.ports import Incidents, Instances, PlatformChecks, SchemaCheck, Workload, WorkloadMetricsReader
from domain.probes.ports import DocumentParser, WebClient
from domain.proposals.ports import ProposalUpkeep
from domain.request_logs.ports import RequestLogSink
from domain.secrets.keys import ActiveKeys
from domain.secrets.ports import EncryptedValues, KeyRingStore, Vault
from domain.secrets.usecases.keyring import KeyRingKeeper, SecretUnknown
from domain.sources.ports import SourceSchedule
from domain.sso.ports import DnsResolver, SsoDirectory
from domain.sso.usecases.rules import SsoRules
from domain.sso.usecases.sso_sign_in import SsoSignIn
from domain.storage.ports import StorageUpkeep
from domain.usage.ports import UsageUpkeep
from domain.webhooks.model import SHARD_COUNT
from domain.webhooks.ports import DeliveryDatabases, DeliveryStore, PayloadRendering, Sender
from entrypoints import factories
from entrypoints.dependencies import Dependencies
from entrypoints.http.addresses import TrustedProxies
from entrypoints.operations.validation import JsonSchemaValidator
from entrypoints.settings import Settings, get_release_version
from ports.clock import Clock
from ports.codec import Codec
from ports.maintenance import Maintenance
from ports.parsing import ParserRunner
from ports.schemas import SchemaValidator
from ports.signals import Signals
from ports.telemetry import Telemetry
from ports.unit_of_work import UnitOfWork
from ports.workspaces import Workspaces

LOG = logging.getLogger("joinery.secrets")
FACTORIES = [factory for name, factory in vars(factories).items() if name.startswith("create_")]
"""The functions `create_…` of entrypoints.factories; each creates an instance of the type that its return annotation names."""


def _create_notification_texts(settings: Settings, keys: ActiveKeys) -> NotificationTexts:
    """Create the texts of notifications."""
    from entrypoints.console.notification_texts import (  # noqa: PLC0415  slow to import, and few processes send any
        ConsoleNotificationTexts,
    )

    return ConsoleNotificationTexts(settings.base_url, keys)


def create_dependencies(settings: Settings, process_name: str = "command") -> Dependencies:
    """Create the dependency container of a process, whose instances are created at first use.

    Args:
        settings: The settings of the process.
        process_name: The name of the process in telemetry, such as `api`.
    """
    hosts, base_url = settings.allow_private_hosts, settings.base_url
    factory_by_type: dict[Any, Callable[..., Any]] = {
        AgreementPublisher: partial(AgreementPublisher, base_url=base_url),
        AgreementRegistry: PostgresAgreementRegistry,
        AesGcmVault: partial(AesGcmVault, settings.secret, settings.former_secrets),
        PasskeyCeremonies: partial(WebauthnCeremonies, base_url),
        Codec: JsonCodec,
        BillingRegistry: PostgresBillingRegistry,
        PriceRegistry: PostgresPriceRegistry,
        BrandRegistry: PostgresBrandRegistry,
        CredentialLookup: PostgresCredentials,
        CreditRateRegistry: PostgresCreditRateRegistry,
        CreditUpkeep: PostgresCreditUpkeep,
        AssistantUpkeep: PostgresAssistantUpkeep,
        DeliveryStore: PostgresDeliveryStore,
        DeliveryDatabases: partial(PostgresDeliveryNodes, shards=SHARD_COUNT),
        JobDispatcher: PostgresDispatch,
        DocumentParser: MarkupDocuments,
        EventReader: PostgresEventReader,
        EventRendering: JsonEventRendering,
        ExportUpkeep: PostgresExportMaintenance,
        ScheduledExportUpkeep: PostgresScheduledExportMaintenance,
        Factors: PostgresFactors,
        FeedReaderFactory: ProcessFeedReaders,
        ParserRunner: ProcessCalls,
        PdfPrinter: ProcessPdfPrinter,
        ComparisonUpkeep: PostgresComparisonUpkeep,
        ImageConverter: ProcessImageConverter,
        FileWorkspaces: partial(FileWorkspaces, settings.work_dir),
        GuardedClient: partial(GuardedClient, allowed_hosts=hosts, version=get_release_version()),
        OAuthProtocol: partial(AuthlibGrantRules, base_url),
        HttpClient: GuardedClient,
        ImageFetcher: HttpImages,
        InboundAddresses: PostgresInboundAddresses,
        InvitationService: partial(InvitationService, base_url=base_url),
        Incidents: PostgresIncidents,
        Instances: PostgresInstances,
        KeyRingStore: PostgresKeyRingStore,
        Maintenance: PostgresMaintenance,
        MatchBacklogReader: PostgresMatchBacklog,
        Memberships: PostgresMemberships,
        DnsResolver: partial(DnsRecords, settings.resolver),
        NetworkLog: PostgresNetworkLog,
        NotificationTexts: _create_notification_texts,
        NotificationUpkeep: PostgresNotificationUpkeep,
        NotificationRuleService: partial(NotificationRuleService, allowed_hosts=hosts),
        ReceiverClient: partial(ReceiverClient, user_agent=f"Joinery/{get_release_version()}"),
        SecurityNotifier: partial(SecurityNotifier, base_url=base_url),
        OneTimeCodes: TotpCodes,
        OneTimeLinks: PostgresOneTimeLinks,
        WorkloadMetricsReader: PostgresWorkloadMetrics,
        OrgRegistry: PostgresOrgRegistry,
        Outbox: PostgresOutbox,
        Passkeys: PostgresPasskeys,
        GuessEstimator: ZxcvbnEstimator,
        PasswordService: partial(PasswordService, base_url=base_url),
        PasswordHasher: Argon2Passwords,
        PayloadRendering: JsonPayloadRendering,
        People: PostgresPeople,
        PlatformChecks: PostgresPlatformChecks,
        PluggyConnectors: partial(load_connectors, Path(settings.plugins_file), release_version=get_release_version()),
        PostgresShards: partial(PostgresShards, shards=SHARD_COUNT),
        PostgresPurgeGuard | None: PostgresPurgeGuard,
        CatalogueRenderer: partial(JsonCatalogueRendering, base_url),
        ProposalUpkeep: PostgresProposalUpkeep,
        TrustedProxies: partial(TrustedProxies, settings.trusted_proxies),
        RequestLogSink: PostgresRequestLogSink,
        SchemaCheck: PostgresSchemaCheck,
        SchemaValidator: JsonSchemaValidator,
        EncryptedValues: PostgresEncryptedValues,
        Sender: partial(HttpSender, allowed_hosts=hosts),
        Sessions: PostgresSessions,
        SignInRules | None: SsoRules,
        Signals: PostgresSignals,
        SourceSchedule: PostgresSourceSchedule,
        SsoDirectory: PostgresSsoDirectory,
        SsoSignIn: partial(SsoSignIn, redirect_uri_prefix=f"{base_url}/console/sso/callback/"),
        StorageUpkeep: PostgresStorageMaintenance,
        TokenStore: PostgresTokenStore,
        UnitOfWork: PostgresUnitOfWork,
        UsageUpkeep: PostgresUsageMaintenance,
        DemandUpkeep: PostgresDemandUpkeep,
        Vault: AesGcmVault,
        WebClient: HttpWeb,
        Workload: PostgresWorkload,
        Workspaces: FileWorkspaces,
        ActiveKeys: partial(ActiveKeys, settings.secrets),
    }
    dependencies = Dependencies(factory_by_type, FACTORIES)
    dependencies[Settings], dependencies[factories.ProcessName], dependencies[Clock] = settings, process_name, CLOCK
    return dependencies


@asynccontextmanager
async def open_dependencies(settings: Settings, process_name: str = "command") -> AsyncIterator[Dependencies]:
    """Open the dependency container of a process, load the key ring, and close all instances at the end of the context.

    If the key ring cannot be loaded, for example without a database, a warning is logged and no error is raised. Using
    the keys then raises Unavailable.

    Args:
        settings: The settings of the process.
        process_name: The name of the process in telemetry, such as `api`.

    Raises:
        SecretUnknown: The settings do not contain the secret with which the key ring is encrypted.
    """
    dependencies = create_dependencies(settings, process_name)
    dependencies.find_optional(Telemetry)  # created first, closed last
    try:
        try:
            await dependencies[KeyRingKeeper].load()
        except SecretUnknown:
            raise
        except Exception as error:  # a process also starts without its database
            LOG.warning("key ring not loaded: %s", error)
        yield dependencies
    finally:
        await dependencies.close()
