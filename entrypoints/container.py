"""The composition root: which adapter stands behind which port, in one place, for every kind of process."""

import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

from dependency_injector import containers, providers

from adapters.argon2.passwords import Argon2Passwords
from adapters.files.workspaces import FileWorkspaces
from adapters.http.client import GuardedClient
from adapters.http.images import HttpImages
from adapters.http.sender import HttpSender
from adapters.http.web import HttpWeb
from adapters.markup.documents import MarkupDocuments
from adapters.pluggy.host import connect
from adapters.postgres.event_reader import PostgresEventReader
from adapters.postgres.events import PostgresNetworkLog
from adapters.postgres.idempotency import PostgresIdempotencyMaintenance
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
from domain.people.usecases.links import LinkService
from domain.people.usecases.sessions import SessionService
from domain.secrets.keys import WorkingKeys
from domain.secrets.usecases.keyring import Keyring, SecretUnknown
from domain.sso.usecases.rules import SsoRules
from domain.webhooks.model import SHARDS
from domain.webhooks.usecases.payloads import ObjectsAsOf, Payloads
from entrypoints.dependencies import Dependencies
from entrypoints.factories import (
    feed_readers_of,
    grant_rules_of,
    image_converter_of,
    limits_of,
    mailer_of,
    metrics_export_of,
    model_client_of,
    models_of,
    objects_of,
    parsers_of,
    pool_of,
    product_version,
    readiness_of,
    telemetry_of,
    tracing_of,
    vault_of,
    waiting_of,
)
from entrypoints.operations.validation import SchemaFaults
from entrypoints.settings import Settings
from entrypoints.sso import sso_of

LOG: Final = logging.getLogger("joinery.secrets")


class Container(containers.DeclarativeContainer):
    """Every provider is a synchronous singleton; what must be opened or closed is so by `opened`."""

    settings = providers.Dependency(instance_of=Settings)
    process = providers.Dependency(instance_of=str, default="command")
    telemetry = providers.Singleton(telemetry_of, settings, process)
    tracing = providers.Singleton(tracing_of, telemetry)
    clock = providers.Object(CLOCK)
    vault = providers.Singleton(vault_of, settings)
    keys = providers.Singleton(WorkingKeys, settings.provided.secrets)
    pool = providers.Singleton(pool_of, settings, vault)
    schema = providers.Singleton(PostgresSchemaCheck, pool)
    key_rings = providers.Singleton(PostgresKeyRings, pool)
    keyring = providers.Singleton(Keyring, key_rings, vault, keys, clock)
    sealed_values = providers.Singleton(PostgresSealedValues, pool)
    rendering = providers.Singleton(WireRendering, settings.provided.base_url)
    codec = providers.Singleton(JsonCodec)
    event_rendering = providers.Singleton(WireEventRendering)
    uow = providers.Singleton(PostgresUnitOfWork, pool, clock, rendering, event_rendering, tracing)
    credentials = providers.Singleton(PostgresCredentials, pool)
    registry = providers.Singleton(PostgresOrgRegistry, pool)
    memberships = providers.Singleton(PostgresMemberships, pool)
    dispatch = providers.Singleton(PostgresDispatch, pool)
    inbound_addresses = providers.Singleton(PostgresInboundAddresses, pool)
    source_schedule = providers.Singleton(PostgresSourceSchedule, pool)
    request_log_sink = providers.Singleton(PostgresRequestLogSink, pool)
    match_backlog = providers.Singleton(PostgresMatchBacklog, pool)
    platform_checks = providers.Singleton(PostgresPlatformChecks, pool)
    incidents = providers.Singleton(PostgresIncidents, pool)
    instances = providers.Singleton(PostgresInstances, pool)
    idempotency_maintenance = providers.Singleton(PostgresIdempotencyMaintenance, pool)
    purge_guard = providers.Singleton(PostgresPurgeGuard, pool)
    schedule_repair = providers.Singleton(PostgresScheduleRepair, pool)
    maintenance = providers.Singleton(PostgresMaintenance, pool, purge_guard)
    storage = providers.Singleton(PostgresStorageUpkeep, pool)
    usage = providers.Singleton(PostgresUsageUpkeep, pool, clock)
    workload = providers.Singleton(PostgresWorkload, pool)
    exports = providers.Singleton(PostgresExportUpkeep, pool)
    network_log = providers.Singleton(PostgresNetworkLog, pool, clock)
    event_reader = providers.Singleton(PostgresEventReader, pool)
    signals = providers.Singleton(PostgresSignals, pool)
    tailer = providers.Singleton(LogTailer, event_reader, event_rendering, signals)
    limits = providers.Singleton(limits_of, settings)
    objects = providers.Singleton(objects_of, settings, keys)
    http = providers.Singleton(
        GuardedClient, allowed_hosts=settings.provided.allow_private_hosts, version=product_version()
    )
    connectors = providers.Singleton(
        connect, providers.Singleton(Path, settings.provided.plugins_file), http, product_version=product_version()
    )
    feed_readers = providers.Singleton(feed_readers_of, settings, codec)
    parsers = providers.Singleton(parsers_of, settings)
    workspaces = providers.Singleton(FileWorkspaces, settings.provided.work_dir)
    feed_cursors = providers.Singleton(FeedCursors, keys.provided.cursors)
    image_fetcher = providers.Singleton(HttpImages, http)
    image_converter = providers.Singleton(image_converter_of, settings)
    schemas = providers.Singleton(SchemaFaults)
    model_client = providers.Singleton(model_client_of, settings)
    models = providers.Singleton(models_of, settings, schemas, model_client)
    sender = providers.Singleton(HttpSender, allowed_hosts=settings.provided.allow_private_hosts)
    shards = providers.Singleton(PostgresShards, pool, SHARDS)
    delivery_log = providers.Singleton(PostgresDeliveryLog, pool, shards, clock)
    delivery_places = providers.Singleton(PostgresDeliveryPlaces, pool, SHARDS, clock)
    payloads = providers.Singleton(
        Payloads,
        codec,
        providers.Singleton(WirePayloadRendering),
        providers.Singleton(ObjectsAsOf, uow, event_reader, codec),
    )
    people = providers.Singleton(PostgresPeople, pool)
    token_store = providers.Singleton(PostgresTokenStore, pool)
    session_store = providers.Singleton(PostgresSessions, pool)
    access = providers.Singleton(
        AccessService, credentials, keys, providers.Dict({b"p": session_store, b"a": token_store})
    )
    grant_rules = providers.Singleton(grant_rules_of, settings, access)
    sso_directory = providers.Singleton(PostgresSsoDirectory, pool)
    sso_rules = providers.Singleton(SsoRules, uow, sso_directory, session_store)
    sessions = providers.Singleton(SessionService, session_store, memberships, access, clock, sso_rules)
    sso = providers.Singleton(sso_of, settings, uow, sso_directory, sso_rules, people, vault, clock, http)
    links = providers.Singleton(LinkService, providers.Singleton(PostgresOneTimeLinks, pool), access, clock)
    mailer = providers.Singleton(mailer_of, settings, clock)
    outgoing_mail = providers.Singleton(OutgoingMail, providers.Singleton(PostgresOutbox, pool), vault, clock, mailer)
    passwords = providers.Singleton(Argon2Passwords)
    guesses = providers.Singleton(ZxcvbnGuesses)
    accounts = providers.Singleton(
        accounts_of,
        people,
        providers.Singleton(PostgresFactors, pool),
        providers.Singleton(PostgresPasskeys, pool),
        sessions,
        links,
        access,
        outgoing_mail,
        providers.Singleton(
            Technology,
            passwords=passwords,
            guesses=guesses,
            codes=providers.Singleton(TotpCodes),
            ceremonies=providers.Singleton(WebauthnCeremonies, settings.provided.base_url),
            limits=limits,
            vault=vault,
            clock=clock,
            base_url=settings.provided.base_url,
        ),
    )
    assembled = providers.Singleton(
        Dependencies,
        settings=settings,
        clock=clock,
        uow=uow,
        memberships=memberships,
        access=access,
        people=people,
        sessions=sessions,
        token_store=token_store,
        grant_rules=grant_rules,
        links=links,
        outgoing_mail=outgoing_mail,
        accounts=accounts,
        sso=sso,
        limits=limits,
        vault=vault,
        keys=keys,
        keyring=keyring,
        sealed_values=sealed_values,
        objects=objects,
        connectors=connectors,
        schemas=schemas,
        codec=codec,
        feed_readers=feed_readers,
        workspaces=workspaces,
        events=event_reader,
        event_rendering=event_rendering,
        tailer=tailer,
        feed_cursors=feed_cursors,
        signals=signals,
        dispatch=dispatch,
        source_schedule=source_schedule,
        request_logs=request_log_sink,
        platform_checks=platform_checks,
        incidents=incidents,
        match_backlog=match_backlog,
        idempotency=idempotency_maintenance,
        maintenance=maintenance,
        storage=storage,
        usage=usage,
        workload=workload,
        exports=exports,
        delivery_log=delivery_log,
        delivery_places=delivery_places,
        sender=sender,
        web=providers.Singleton(HttpWeb, http),
        documents=providers.Singleton(MarkupDocuments, parsers),
        parsers=parsers,
        image_fetcher=image_fetcher,
        image_converter=image_converter,
        models=models,
        schema=schema,
        instances=instances,
        figures=providers.Singleton(PostgresOperatingFigures, pool),
        tracing=tracing,
        metrics_export=providers.Singleton(metrics_export_of, telemetry),
        waiting=providers.Singleton(waiting_of, pool),
        readiness=providers.Singleton(readiness_of, pool, schema, keys),
    )


@asynccontextmanager
async def opened(settings: Settings, process: str = "command") -> AsyncIterator[Container]:
    """A container that works with the key ring; its connections are closed on leaving. Raises SecretUnknown.

    `process` is what a collector knows it as.

    While the database is away, or not migrated, it is opened all the same: who then needs the keys hears Unavailable.
    """
    container = Container(settings=providers.Object(settings), process=providers.Object(process))
    async with AsyncExitStack() as stack:
        if (telemetry := container.telemetry()) is not None:
            stack.push_async_callback(telemetry.close)
        stack.push_async_callback(container.pool().close)
        stack.push_async_callback(container.http().close)
        stack.push_async_callback(container.sender().close)
        stack.push_async_callback(container.model_client().close)
        stack.callback(lambda: container.passwords().close())
        stack.callback(lambda: container.guesses().close())
        stack.callback(lambda: container.workspaces().close())
        stack.push_async_callback(lambda: container.feed_readers().close())
        stack.push_async_callback(lambda: container.image_converter().close())
        stack.push_async_callback(lambda: container.parsers().close())
        try:
            await container.keyring().load()
        except SecretUnknown:
            raise
        except Exception as error:  # a process starts without its database, and says so when it is asked
            LOG.warning("the key ring could not be read (%s)", error)
        yield container
