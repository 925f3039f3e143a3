"""The composition root: which adapter stands behind which port, in one place, for every kind of process."""

import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import fields
from pathlib import Path

from dependency_injector.containers import DeclarativeContainer
from dependency_injector.providers import Dependency, Dict, Object, Singleton

from adapters.aesgcm.vault import AesGcmVault
from adapters.argon2.passwords import Argon2Passwords
from adapters.authlib.rules import AuthlibRules
from adapters.dns.records import DnsRecords
from adapters.files.workspaces import FileWorkspaces
from adapters.http.client import GuardedClient
from adapters.http.images import HttpImages
from adapters.http.outbound import HttpOutbound
from adapters.http.sender import HttpSender
from adapters.http.web import HttpWeb
from adapters.markup.documents import MarkupDocuments
from adapters.oidc.provider import OidcProviders
from adapters.pluggy.host import connect
from adapters.postgres.event_reader import PostgresEventReader
from adapters.postgres.events import PostgresNetworkLog
from adapters.postgres.jobs import PostgresDispatch
from adapters.postgres.locks import PostgresShards
from adapters.postgres.maintenance import PostgresMaintenance, PostgresPurgeGuard, PostgresScheduleRepair
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
from adapters.totp.one_time_codes import TotpCodes
from adapters.webauthn.passkeys import WebauthnCeremonies
from adapters.wire.catalogue import WireRendering
from adapters.wire.codec import JsonCodec
from adapters.wire.cursors import FeedCursors
from adapters.wire.events import WireEventRendering
from adapters.wire.webhooks import WirePayloadRendering
from adapters.zxcvbn.guesses import ZxcvbnGuesses
from domain.access.usecases import AccessService
from domain.changes.usecases.tailing import LogTailer
from domain.kernel.clock import CLOCK
from domain.outbox.usecases.outgoing_mail import OutgoingMail
from domain.people.usecases.accounts import Technology, accounts_of
from domain.people.usecases.sessions import LinkService, SessionService
from domain.secrets.keys import WorkingKeys
from domain.secrets.usecases.keyring import Keyring, SecretUnknown
from domain.sso.usecases.proving import DomainProofs
from domain.sso.usecases.rules import SsoRules
from domain.sso.usecases.settings import SsoSettings
from domain.sso.usecases.signing_in import SsoSignIn
from domain.webhooks.model import SHARDS
from domain.webhooks.usecases.payloads import ObjectsAsOf, Payloads
from entrypoints.dependencies import Dependencies, Sso, callback_of
from entrypoints.factories import (
    feed_readers_of,
    image_converter_of,
    limits_of,
    mailer_of,
    model_client_of,
    models_of,
    objects_of,
    parsers_of,
    pool_of,
    product_version,
    readiness_of,
    telemetry_of,
    waiting_of,
)
from entrypoints.operations.validation import SchemaFaults
from entrypoints.settings import Settings

LOG = logging.getLogger("joinery.secrets")


class Container(DeclarativeContainer):
    """Every provider is a synchronous singleton; what must be opened or closed is so by `opened`."""

    settings = Dependency(instance_of=Settings)
    process = Dependency(instance_of=str, default="command")
    telemetry = Singleton(telemetry_of, settings, process)
    tracing = Singleton(getattr, telemetry, "tracing", None)
    clock = Object(CLOCK)
    vault = Singleton(AesGcmVault, settings.provided.secret, settings.provided.former_secrets)
    keys = Singleton(WorkingKeys, settings.provided.secrets)
    pool = Singleton(pool_of, settings, vault)
    schema = Singleton(PostgresSchemaCheck, pool)
    key_rings = Singleton(PostgresKeyRings, pool)
    keyring = Singleton(Keyring, key_rings, vault, keys, clock)
    sealed_values = Singleton(PostgresSealedValues, pool)
    rendering = Singleton(WireRendering, settings.provided.base_url)
    codec = Singleton(JsonCodec)
    event_rendering = Singleton(WireEventRendering)
    uow = Singleton(PostgresUnitOfWork, pool, clock, rendering, event_rendering, tracing)
    credentials = Singleton(PostgresCredentials, pool)
    registry = Singleton(PostgresOrgRegistry, pool)
    memberships = Singleton(PostgresMemberships, pool)
    dispatch = Singleton(PostgresDispatch, pool)
    inbound_addresses = Singleton(PostgresInboundAddresses, pool)
    source_schedule = Singleton(PostgresSourceSchedule, pool)
    request_logs = Singleton(PostgresRequestLogSink, pool)
    match_backlog = Singleton(PostgresMatchBacklog, pool)
    platform_checks = Singleton(PostgresPlatformChecks, pool)
    incidents = Singleton(PostgresIncidents, pool)
    instances = Singleton(PostgresInstances, pool)
    purge_guard = Singleton(PostgresPurgeGuard, pool)
    schedule_repair = Singleton(PostgresScheduleRepair, pool)
    maintenance = Singleton(PostgresMaintenance, pool, purge_guard)
    storage = Singleton(PostgresStorageUpkeep, pool)
    usage = Singleton(PostgresUsageUpkeep, pool, clock)
    workload = Singleton(PostgresWorkload, pool)
    exports = Singleton(PostgresExportUpkeep, pool)
    network_log = Singleton(PostgresNetworkLog, pool, clock)
    events = Singleton(PostgresEventReader, pool)
    signals = Singleton(PostgresSignals, pool)
    tailer = Singleton(LogTailer, events, event_rendering, signals)
    limits = Singleton(limits_of, settings)
    objects = Singleton(objects_of, settings, keys)
    http = Singleton(GuardedClient, allowed_hosts=settings.provided.allow_private_hosts, version=product_version())
    connectors = Singleton(
        connect, Singleton(Path, settings.provided.plugins_file), http, product_version=product_version()
    )
    feed_readers = Singleton(feed_readers_of, settings, codec)
    parsers = Singleton(parsers_of, settings)
    workspaces = Singleton(FileWorkspaces, settings.provided.work_dir)
    feed_cursors = Singleton(FeedCursors, keys.provided.cursors)
    image_fetcher = Singleton(HttpImages, http)
    image_converter = Singleton(image_converter_of, settings)
    schemas = Singleton(SchemaFaults)
    model_client = Singleton(model_client_of, settings)
    models = Singleton(models_of, settings, schemas, model_client)
    sender = Singleton(HttpSender, allowed_hosts=settings.provided.allow_private_hosts)
    shards = Singleton(PostgresShards, pool, SHARDS)
    delivery_log = Singleton(PostgresDeliveryLog, pool, shards, clock)
    delivery_places = Singleton(PostgresDeliveryPlaces, pool, SHARDS, clock)
    payloads = Singleton(
        Payloads,
        codec,
        Singleton(WirePayloadRendering),
        Singleton(ObjectsAsOf, uow, events, codec),
    )
    people = Singleton(PostgresPeople, pool)
    token_store = Singleton(PostgresTokenStore, pool)
    session_store = Singleton(PostgresSessions, pool)
    access = Singleton(AccessService, credentials, keys, Dict({b"p": session_store, b"a": token_store}))
    grant_rules = Singleton(AuthlibRules, settings.provided.base_url, access.provided.digest)
    sso_directory = Singleton(PostgresSsoDirectory, pool)
    sso_rules = Singleton(SsoRules, uow, session_store)
    sessions = Singleton(SessionService, session_store, memberships, access, clock, sso_rules)
    identity_providers = Singleton(OidcProviders, Singleton(HttpOutbound, http, settings.provided.allow_private_hosts))
    sso = Singleton(
        Sso,
        settings=Singleton(SsoSettings, vault),
        proofs=Singleton(DomainProofs, Singleton(DnsRecords, settings.provided.resolver), sso_directory, clock),
        rules=sso_rules,
        providers=identity_providers,
        sign_in=Singleton(
            SsoSignIn, uow, sso_directory, people, identity_providers, vault, clock, Singleton(callback_of, settings)
        ),
    )
    links = Singleton(LinkService, Singleton(PostgresOneTimeLinks, pool), access, clock)
    mailer = Singleton(mailer_of, settings, clock)
    outgoing_mail = Singleton(OutgoingMail, Singleton(PostgresOutbox, pool), vault, clock, mailer)
    passwords = Singleton(Argon2Passwords)
    guesses = Singleton(ZxcvbnGuesses)
    accounts = Singleton(
        accounts_of,
        people,
        Singleton(PostgresFactors, pool),
        Singleton(PostgresPasskeys, pool),
        sessions,
        links,
        access,
        outgoing_mail,
        Singleton(
            Technology,
            passwords=passwords,
            guesses=guesses,
            codes=Singleton(TotpCodes),
            ceremonies=Singleton(WebauthnCeremonies, settings.provided.base_url),
            limits=limits,
            vault=vault,
            clock=clock,
            base_url=settings.provided.base_url,
        ),
    )
    web = Singleton(HttpWeb, http)
    documents = Singleton(MarkupDocuments, parsers)
    figures = Singleton(PostgresOperatingFigures, pool)
    metrics_export = Singleton(getattr, telemetry, "export", None)
    waiting = Singleton(waiting_of, pool)
    readiness = Singleton(readiness_of, pool, schema, keys)
    assembled: Singleton[Dependencies]
    """The providers of the same names as one value."""


Container.assembled = Singleton(
    Dependencies, **{one.name: Container.providers[one.name] for one in fields(Dependencies)}
)


@asynccontextmanager
async def opened(settings: Settings, process: str = "command") -> AsyncIterator[Container]:
    """A container that works with the key ring; its connections are closed on leaving. Raises SecretUnknown.

    `process` is what a collector knows it as.

    While the database is away, or not migrated, it is opened all the same: who then needs the keys hears Unavailable.
    """
    container = Container(settings=Object(settings), process=Object(process))
    async with AsyncExitStack() as stack:
        if (telemetry := container.telemetry()) is not None:
            stack.push_async_callback(telemetry.close)
        for provider in (container.pool, container.http, container.sender, container.model_client):
            stack.push_async_callback(provider().close)
        for lazy in (container.passwords, container.guesses, container.workspaces):
            stack.callback(lambda provider: provider().close(), lazy)
        for readers in (container.feed_readers, container.image_converter, container.parsers):
            stack.push_async_callback(lambda provider: provider().close(), readers)
        try:
            await container.keyring().load()
        except SecretUnknown:
            raise
        except Exception as error:  # a process starts without its database, and says so when it is asked
            LOG.warning("the key ring could not be read (%s)", error)
        yield container
