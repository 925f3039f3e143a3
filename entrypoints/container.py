"""The composition root: which adapter stands behind which port, in one place, for every kind of process."""

import logging
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from dependency_injector import containers, providers

from adapters.aesgcm.vault import AesGcmVault
from adapters.argon2.passwords import Argon2Passwords
from adapters.authlib.rules import AuthlibRules
from adapters.files.objects import FileObjects
from adapters.files.workspaces import FileWorkspaces
from adapters.http.client import GuardedClient
from adapters.http.images import HttpImages
from adapters.http.sender import HttpSender
from adapters.http.web import HttpWeb
from adapters.llm.anthropic import AnthropicDialect
from adapters.llm.client import ModelClient
from adapters.llm.dialect import Dialect
from adapters.llm.models import ProviderModels
from adapters.llm.openai import OpenAiDialect
from adapters.llm.pricing import Price
from adapters.markup.documents import MarkupDocuments
from adapters.memory.clock import SystemClock
from adapters.memory.limits import MemoryLimits
from adapters.pluggy.host import connect
from adapters.postgres.access import PostgresCredentials
from adapters.postgres.delivery_places import PostgresDeliveryPlaces
from adapters.postgres.event_reader import PostgresEventReader
from adapters.postgres.exports import PostgresExportUpkeep
from adapters.postgres.factors import PostgresFactors, PostgresPasskeys
from adapters.postgres.idempotency import PostgresIdempotencyMaintenance
from adapters.postgres.jobs import PostgresDispatch
from adapters.postgres.mail import PostgresInboundAddresses
from adapters.postgres.maintenance import PostgresMaintenance
from adapters.postgres.match_index import PostgresMatchBacklog
from adapters.postgres.network import PostgresNetworkLog
from adapters.postgres.nodes.pool import Pool
from adapters.postgres.oauth import PostgresSignIns
from adapters.postgres.orgs import PostgresMemberships, PostgresOrgRegistry
from adapters.postgres.outbox import PostgresOutbox
from adapters.postgres.people import PostgresOneTimeLinks, PostgresPeople, PostgresSessions
from adapters.postgres.platform import PostgresIncidents, PostgresPlatformChecks
from adapters.postgres.request_logs import PostgresRequestLogSink
from adapters.postgres.secrets import PostgresKeyRings, PostgresSealedValues
from adapters.postgres.shards import PostgresShards
from adapters.postgres.signals import PostgresSignals
from adapters.postgres.sources import PostgresSourceSchedule
from adapters.postgres.sso import PostgresSsoDirectory
from adapters.postgres.storage import PostgresStorageUpkeep
from adapters.postgres.unit_of_work import PostgresUnitOfWork
from adapters.postgres.usage import PostgresUsageUpkeep
from adapters.postgres.webhook_deliveries import PostgresDeliveryLog
from adapters.postgres.workload import PostgresWorkload
from adapters.processes.feed_readers import ProcessFeedReaders, ReaderLimits
from adapters.processes.images import ProcessImages
from adapters.redis.limits import RedisLimits
from adapters.s3.objects import S3Objects
from adapters.scripted.models import BadScript, ScriptedModels
from adapters.smtp.mailer import Relay, SmtpMailer
from adapters.totp.one_time_codes import TotpCodes
from adapters.webauthn.passkeys import WebauthnCeremonies
from adapters.wire.catalogue import WireRendering
from adapters.wire.codec import JsonCodec
from adapters.wire.cursors import FeedCursors
from adapters.wire.events import WireEventRendering
from adapters.wire.webhooks import WirePayloadRendering
from connectors.sdk.context import Limits as FileLimits
from domain.access.usecases import AccessService
from domain.changes.usecases.tailing import LogTailer
from domain.outbox.usecases.outgoing_mail import OutgoingMail
from domain.people.usecases.accounts import Technology, accounts_of
from domain.people.usecases.links import LinkService
from domain.people.usecases.sessions import SessionService
from domain.secrets.keys import WorkingKeys
from domain.secrets.usecases.keyring import Keyring, SecretUnknown
from domain.sso.usecases.rules import SsoRules
from domain.webhooks.model import SHARDS
from domain.webhooks.usecases.payloads import ObjectsAsOf, Payloads
from entrypoints.dependencies import Dependencies, Readiness
from entrypoints.http.validation import SchemaFaults
from entrypoints.settings import Settings, SettingsError
from entrypoints.sso import sso_of
from ports.clock import Clock
from ports.codec import Codec
from ports.limits import Limits
from ports.mailer import Mailer
from ports.metrics import Collect, MetricsExport
from ports.models import Models
from ports.objects import Objects
from ports.schemas import Schemas
from ports.telemetry import Telemetry
from ports.tracing import Tracing

FILE_LIMITS: Final = FileLimits()
DIALECTS: Final[Mapping[str, type[Dialect]]] = {"openai": OpenAiDialect, "anthropic": AnthropicDialect}
LOG: Final = logging.getLogger("joinery.secrets")


def product_version() -> str:
    """This release's version."""
    try:
        return version("joinery")
    except PackageNotFoundError:
        return "0"


def vault_of(settings: Settings) -> AesGcmVault:
    """Seals under the secret in force, opens what any secret at hand sealed."""
    return AesGcmVault(settings.secret, settings.former_secrets)


def pool_of(settings: Settings, vault: AesGcmVault) -> Pool:
    """Connections that show which secrets this process knows."""
    return Pool(settings.database_url, size=settings.pool_size, known=vault.keys)


def objects_of(settings: Settings, keys: WorkingKeys) -> Objects:
    """The blob store that JOINERY_OBJECTS_URL names: a folder, or a bucket."""
    if settings.objects_url.startswith("s3://"):
        return S3Objects(settings.objects_url)
    return FileObjects(Path(unquote(urlsplit(settings.objects_url).path)), settings.base_url, keys.links)


def limits_of(settings: Settings) -> Limits:
    """Budgets in Redis when there is one, else in each process."""
    return RedisLimits(settings.redis_url) if settings.redis_url else MemoryLimits()


def feed_readers_of(settings: Settings, codec: Codec, limits: FileLimits = FILE_LIMITS) -> ProcessFeedReaders:
    """Readers in processes of their own, which bound a file as `limits` say."""
    command = [sys.executable, "-P", "-m", "entrypoints.reader", str(os.getpid()), str(settings.reader_memory)]
    command += [product_version(), str(Path(settings.plugins_file).resolve()), codec.encode(asdict(limits)).decode()]
    bounds = ReaderLimits(memory=settings.reader_memory)
    return ProcessFeedReaders(command, codec, most=settings.worker_readers, limits=bounds)


def image_converter_of(settings: Settings) -> ProcessImages:
    """Processes that decode images, each as bounded as a reader of feeds."""
    command = [sys.executable, "-P", "-m", "entrypoints.imager", str(os.getpid()), str(settings.reader_memory)]
    return ProcessImages(command, most=max(1, settings.worker_readers // 2))


def models_of(settings: Settings, schemas: Schemas, client: ModelClient) -> Models | None:
    """What JOINERY_MODELS names; None when nothing is to be asked. Raises SettingsError."""
    if settings.models is None:
        return None
    if (found := settings.provider) is not None:
        prices = {name: Price(*price) for name, price in found.prices.items()}
        return ProviderModels(client, DIALECTS[found.api](), schemas, found.url, found.model, prices, found.key)
    try:
        return ScriptedModels.of_file(Path(unquote(urlsplit(settings.models).path)), schemas)
    except BadScript as error:
        raise SettingsError(f"The script that JOINERY_MODELS names cannot be read: {error}") from error


def mailer_of(settings: Settings, clock: Clock) -> Mailer | None:
    """What hands mail to the server that JOINERY_SMTP_URL names; None when mail stays in the outbox."""
    found = settings.smtp
    if found is None:
        return None
    relay = Relay(found.host, found.port, found.sender, found.implicit_tls, found.start_tls, found.user, found.password)
    return SmtpMailer(relay, clock)


def grant_rules_of(settings: Settings, access: AccessService) -> AuthlibRules:
    """OAuth's grammar, at the operator's address."""
    return AuthlibRules(settings.base_url.rstrip("/"), access.digest)


def waiting_of(pool: Pool) -> Callable[[], int]:
    """How many requests wait for a connection."""
    return lambda: pool.waiting


def readiness_of(pool: Pool) -> Mapping[str, Readiness]:
    """What /readyz asks."""

    async def database() -> bool:
        async with pool.system() as link:
            await link.cursor.execute("SELECT 1")
        return True

    return {"database": database}


def telemetry_of(settings: Settings, process: str) -> Telemetry | None:
    """What tells the collector that JOINERY_OTLP_URL names; None, and nothing is imported, without one. Raises SettingsError."""
    if settings.watching.otlp_url is None:
        return None
    try:
        from adapters.otlp.telemetry import OtlpTelemetry  # noqa: PLC0415  an extra, and slow to import
    except ModuleNotFoundError as error:
        raise SettingsError(
            "JOINERY_OTLP_URL is set, but what speaks to collectors is not installed: pip install 'joinery[otlp]'."
        ) from error
    return OtlpTelemetry(settings.watching.otlp_url, f"joinery-{process}", product_version())


def tracing_of(telemetry: Telemetry | None) -> Tracing | None:
    """Spans, if there is a collector."""
    return telemetry.tracing if telemetry is not None else None


def metrics_export_of(telemetry: Telemetry | None) -> Callable[[Collect], MetricsExport] | None:
    """Figures, if there is a collector."""
    return telemetry.export if telemetry is not None else None


class Container(containers.DeclarativeContainer):
    """Every provider is a synchronous singleton; what must be opened or closed is so by `opened`."""

    settings = providers.Dependency(instance_of=Settings)
    process = providers.Dependency(instance_of=str, default="command")
    telemetry = providers.Singleton(telemetry_of, settings, process)
    tracing = providers.Singleton(tracing_of, telemetry)
    clock = providers.Singleton(SystemClock)
    vault = providers.Singleton(vault_of, settings)
    keys = providers.Singleton(WorkingKeys, settings.provided.secrets)
    pool = providers.Singleton(pool_of, settings, vault)
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
    idempotency_maintenance = providers.Singleton(PostgresIdempotencyMaintenance, pool)
    maintenance = providers.Singleton(PostgresMaintenance, pool)
    storage = providers.Singleton(PostgresStorageUpkeep, pool)
    usage = providers.Singleton(PostgresUsageUpkeep, pool, clock)
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
    workspaces = providers.Singleton(FileWorkspaces, settings.provided.work_dir)
    feed_cursors = providers.Singleton(FeedCursors, keys.provided.cursors)
    image_fetcher = providers.Singleton(HttpImages, http)
    image_converter = providers.Singleton(image_converter_of, settings)
    schemas = providers.Singleton(SchemaFaults)
    model_client = providers.Singleton(ModelClient, product_version())
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
    sign_ins = providers.Singleton(PostgresSignIns, pool)
    session_store = providers.Singleton(PostgresSessions, pool)
    access = providers.Singleton(
        AccessService, credentials, keys, providers.Dict({b"p": session_store, b"a": sign_ins})
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
        sign_ins=sign_ins,
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
        workload=providers.Singleton(PostgresWorkload, pool),
        exports=exports,
        delivery_log=delivery_log,
        delivery_places=delivery_places,
        sender=sender,
        web=providers.Singleton(HttpWeb, http),
        documents=providers.Singleton(MarkupDocuments),
        image_fetcher=image_fetcher,
        image_converter=image_converter,
        models=models,
        tracing=tracing,
        metrics_export=providers.Singleton(metrics_export_of, telemetry),
        waiting=providers.Singleton(waiting_of, pool),
        readiness=providers.Singleton(readiness_of, pool),
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
        stack.callback(lambda: container.workspaces().close())
        stack.push_async_callback(lambda: container.feed_readers().close())
        stack.push_async_callback(lambda: container.image_converter().close())
        try:
            await container.keyring().load()
        except SecretUnknown:
            raise
        except Exception as error:  # a process starts without its database, and says so when it is asked
            LOG.warning("the key ring could not be read (%s)", error)
        yield container
