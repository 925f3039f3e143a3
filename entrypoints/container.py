"""Composition root: the adapters of all ports, for every kind of process."""

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from adapters.aesgcm import AesGcmVault
from adapters.argon2 import Argon2Passwords
from adapters.authlib.rules import AuthlibRules
from adapters.dns import DnsRecords
from adapters.files.workspaces import FileWorkspaces
from adapters.http.client import GuardedClient
from adapters.http.images import HttpImages
from adapters.http.sender import HttpSender
from adapters.http.web import HttpWeb
from adapters.markup.documents import MarkupDocuments
from adapters.pluggy.host import connect
from adapters.postgres.event_reader import PostgresEventReader
from adapters.postgres.events import PostgresNetworkLog
from adapters.postgres.jobs import PostgresDispatch
from adapters.postgres.locks import PostgresShards
from adapters.postgres.maintenance import PostgresMaintenance, PostgresPurgeGuard
from adapters.postgres.matching import PostgresMatchBacklog
from adapters.postgres.migrate import PostgresSchemaCheck
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
    PostgresOperatingFigures,
    PostgresPlatformChecks,
    PostgresWorkload,
)
from adapters.postgres.request_logs import PostgresRequestLogSink
from adapters.postgres.runs import PostgresExportUpkeep
from adapters.postgres.secrets import PostgresKeyRings, PostgresSealedValues
from adapters.postgres.signals import PostgresSignals
from adapters.postgres.sources import PostgresInboundAddresses, PostgresSourceSchedule
from adapters.postgres.storage import PostgresStorageUpkeep
from adapters.postgres.unit_of_work import PostgresUnitOfWork
from adapters.postgres.usage import PostgresUsageUpkeep
from adapters.postgres.webhook_deliveries import PostgresDeliveryLog, PostgresDeliveryPlaces
from adapters.processes.calls import ProcessCalls, ProcessImages
from adapters.processes.feed_readers import ProcessFeedReaders
from adapters.totp import TotpCodes
from adapters.webauthn import WebauthnCeremonies
from adapters.wire.catalogue import WireRendering
from adapters.wire.codec import JsonCodec
from adapters.wire.events import WireEventRendering
from adapters.wire.webhooks import WirePayloadRendering
from adapters.zxcvbn import ZxcvbnGuesses
from connectors.sdk.context import HttpClient
from domain.access.ports import Credentials
from domain.catalogue.ports import Rendering
from domain.changes.ports import EventReader, EventRendering, NetworkLog
from domain.exports.ports import ExportUpkeep
from domain.ingestion.ports import Connectors, FeedReaders
from domain.jobs.ports import Dispatch
from domain.kernel.clock import CLOCK
from domain.mail.ports import InboundAddresses
from domain.matching.ports import MatchBacklog
from domain.media.ports import ImageConverter, ImageFetcher
from domain.oauth.ports import GrantRules, TokenStore
from domain.orgs.ports import Memberships, OrgRegistry
from domain.outbox.ports import Outbox
from domain.people.ports import (
    Ceremonies,
    Factors,
    OneTimeCodes,
    OneTimeLinks,
    Passkeys,
    PasswordGuesses,
    Passwords,
    People,
    Sessions,
    SignInRules,
)
from domain.people.usecases.invitations import InvitationService
from domain.people.usecases.notices import Notices
from domain.people.usecases.passwords import PasswordService
from domain.platform.ports import Incidents, Instances, OperatingFiguresReader, PlatformChecks, SchemaCheck, Workload
from domain.probes.ports import Documents, Web
from domain.request_logs.ports import RequestLogSink
from domain.secrets.keys import WorkingKeys
from domain.secrets.ports import KeyRings, SealedValues, Vault
from domain.secrets.usecases.keyring import Keyring, SecretUnknown
from domain.sources.ports import SourceSchedule
from domain.sso.ports import NameRecords, SsoDirectory
from domain.sso.usecases.rules import SsoRules
from domain.sso.usecases.signing_in import SsoSignIn
from domain.storage.ports import StorageUpkeep
from domain.usage.ports import UsageUpkeep
from domain.webhooks.model import SHARDS
from domain.webhooks.ports import DeliveryLog, DeliveryPlaces, PayloadRendering, Sender
from entrypoints import factories
from entrypoints.dependencies import Dependencies
from entrypoints.http.addresses import Proxies
from entrypoints.operations.validation import SchemaFaults
from entrypoints.settings import Settings
from ports.clock import Clock
from ports.codec import Codec
from ports.maintenance import Maintenance
from ports.parsing import ParserRunner
from ports.schemas import Schemas
from ports.signals import Signals
from ports.telemetry import Telemetry
from ports.unit_of_work import UnitOfWork
from ports.workspaces import Workspaces

LOG = logging.getLogger("joinery.secrets")
FACTORIES = [factory for name, factory in vars(factories).items() if name.endswith("_of") and not name.startswith("_")]
"""Functions that create what their return annotation names."""


def dependencies_of(settings: Settings, process: str = "command") -> Dependencies:
    """Return the dependencies of a process, not yet created. `process` is its name for telemetry."""
    hosts, base_url = settings.allow_private_hosts, settings.base_url
    makers: dict[Any, Callable[..., Any]] = {
        AesGcmVault: partial(AesGcmVault, settings.secret, settings.former_secrets),
        Ceremonies: partial(WebauthnCeremonies, base_url),
        Codec: JsonCodec,
        Connectors: partial(connect, Path(settings.plugins_file), product_version=factories.product_version()),
        Credentials: PostgresCredentials,
        DeliveryLog: PostgresDeliveryLog,
        DeliveryPlaces: partial(PostgresDeliveryPlaces, shards=SHARDS),
        Dispatch: PostgresDispatch,
        Documents: MarkupDocuments,
        EventReader: PostgresEventReader,
        EventRendering: WireEventRendering,
        ExportUpkeep: PostgresExportUpkeep,
        Factors: PostgresFactors,
        FeedReaders: ProcessFeedReaders,
        ParserRunner: ProcessCalls,
        ImageConverter: ProcessImages,
        FileWorkspaces: partial(FileWorkspaces, settings.work_dir),
        GuardedClient: partial(GuardedClient, allowed_hosts=hosts, version=factories.product_version()),
        GrantRules: partial(AuthlibRules, base_url),
        HttpClient: GuardedClient,
        ImageFetcher: HttpImages,
        InboundAddresses: PostgresInboundAddresses,
        InvitationService: partial(InvitationService, base_url=base_url),
        Incidents: PostgresIncidents,
        Instances: PostgresInstances,
        KeyRings: PostgresKeyRings,
        Maintenance: PostgresMaintenance,
        MatchBacklog: PostgresMatchBacklog,
        Memberships: PostgresMemberships,
        NameRecords: partial(DnsRecords, settings.resolver),
        NetworkLog: PostgresNetworkLog,
        Notices: partial(Notices, base_url=base_url),
        OneTimeCodes: TotpCodes,
        OneTimeLinks: PostgresOneTimeLinks,
        OperatingFiguresReader: PostgresOperatingFigures,
        OrgRegistry: PostgresOrgRegistry,
        Outbox: PostgresOutbox,
        Passkeys: PostgresPasskeys,
        PasswordGuesses: ZxcvbnGuesses,
        PasswordService: partial(PasswordService, base_url=base_url),
        Passwords: Argon2Passwords,
        PayloadRendering: WirePayloadRendering,
        People: PostgresPeople,
        PlatformChecks: PostgresPlatformChecks,
        PostgresShards: partial(PostgresShards, shards=SHARDS),
        PostgresPurgeGuard | None: PostgresPurgeGuard,
        Rendering: partial(WireRendering, base_url),
        Proxies: partial(Proxies, settings.trusted_proxies),
        RequestLogSink: PostgresRequestLogSink,
        SchemaCheck: PostgresSchemaCheck,
        Schemas: SchemaFaults,
        SealedValues: PostgresSealedValues,
        Sender: partial(HttpSender, allowed_hosts=hosts),
        Sessions: PostgresSessions,
        SignInRules | None: SsoRules,
        Signals: PostgresSignals,
        SourceSchedule: PostgresSourceSchedule,
        SsoDirectory: PostgresSsoDirectory,
        SsoSignIn: partial(SsoSignIn, callback=f"{base_url}/console/sso/callback/"),
        StorageUpkeep: PostgresStorageUpkeep,
        TokenStore: PostgresTokenStore,
        UnitOfWork: PostgresUnitOfWork,
        UsageUpkeep: PostgresUsageUpkeep,
        Vault: AesGcmVault,
        Web: HttpWeb,
        Workload: PostgresWorkload,
        Workspaces: FileWorkspaces,
        WorkingKeys: partial(WorkingKeys, settings.secrets),
    }
    dependencies = Dependencies(makers, FACTORIES)
    dependencies[Settings], dependencies[factories.Process], dependencies[Clock] = settings, process, CLOCK
    return dependencies


@asynccontextmanager
async def opened(settings: Settings, process: str = "command") -> AsyncIterator[Dependencies]:
    """Open the dependencies of a process with its key ring, and close them at the end. Raises SecretUnknown.

    If the database is unavailable or not migrated, they are opened nevertheless; access to the keys raises Unavailable.
    """
    dependencies = dependencies_of(settings, process)
    dependencies.find(Telemetry)  # created first, closed last
    try:
        try:
            await dependencies[Keyring].load()
        except SecretUnknown:
            raise
        except Exception as error:  # a process also starts without its database
            LOG.warning("key ring not loaded: %s", error)
        yield dependencies
    finally:
        await dependencies.close()
