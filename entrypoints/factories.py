"""Factories of adapters that depend on the settings."""

import os
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, NewType
from urllib.parse import unquote, urlsplit

from adapters.aesgcm import AesGcmVault
from adapters.api_json.billing import render_purchase
from adapters.api_json.credits import render_balance, render_lot
from adapters.api_json.cursors import FeedCursorSigner
from adapters.files.objects import FileObjects
from adapters.http.client import GuardedClient
from adapters.http.outbound import UPLOAD_BOUNDS, HttpOutbound
from adapters.http.sockets import VettedSockets
from adapters.memory_limits import MemoryLimits
from adapters.mime.reader import READER_ERRORS
from adapters.oidc.provider import OidcProviders
from adapters.pluggy.host import PluggyConnectors
from adapters.postgres.nodes.pool import Pool
from adapters.postgres.oauth import PostgresTokenStore
from adapters.processes.calls import ProcessCalls, ProcessImageConverter
from adapters.processes.feed_readers import ProcessFeedReaders, ReaderLimits
from adapters.processes.pdf import ProcessPdfPrinter
from adapters.pydantic_ai.assistant import PydanticAssistantEngine
from adapters.pydantic_ai.generation import PydanticModels
from adapters.pydantic_ai.pricing import TokenPrice
from adapters.pydantic_ai.providers import ModelServer
from adapters.pydantic_ai.scripted import MODEL_NAME, InvalidScript, ModelScript
from adapters.redis.limits import RedisLimits
from adapters.s3.bucket_target import BucketTarget
from adapters.s3.objects import S3Objects
from adapters.smtp import MailServer, SmtpMailer
from connectors.sdk.context import Limits as FileLimits
from domain.access.ports import CredentialLookup
from domain.access.usecases import AccessService
from domain.assistant.ports import AssistantEngine
from domain.assistant.usecases.budget import AssistantBudget
from domain.assistant.usecases.conversations import (
    AssistantPreferencesService,
    AssistantSettingsService,
    ConversationService,
)
from domain.assistant.usecases.turns import TurnService
from domain.billing.ports import Payments
from domain.billing.usecases.accounts import BillingService
from domain.billing.usecases.purchases import PurchaseUpdater
from domain.changes.ports import NetworkLog
from domain.credits.usecases.ledger import CreditLedger
from domain.exports.ports import FileTargets
from domain.exports.schedules import TargetKind
from domain.ingestion.ports import Connectors
from domain.matching.usecases.judge import resume_judging
from domain.oauth.ports import TokenHasher
from domain.outbox.ports import Mailer
from domain.people.ports import Sessions
from domain.platform.ports import SchemaCheck
from domain.secrets.keys import ActiveKeys
from domain.secrets.ports import EncryptedValues, Vault
from domain.secrets.usecases.keyring import KeyRingKeeper
from domain.secrets.usecases.reencryption import ValueReencrypter
from domain.sources.ports import SourceStore
from domain.sources.usecases.network_connector import CombinedConnectors
from domain.sso.ports import IdentityProviders
from domain.storage.ports import StorageLedger
from domain.usage.meters import SOURCES, STORED_BYTES
from domain.usage.usecases.service import UsageService
from entrypoints.dependencies import ReadinessChecks, WaitingRequestCounter
from entrypoints.errors import SettingsError
from entrypoints.settings import Settings, get_release_version
from ports.clock import Clock
from ports.codec import Codec
from ports.language_models import LanguageModels
from ports.limits import RateLimits
from ports.objects import ObjectStore
from ports.schemas import SchemaValidator
from ports.telemetry import Telemetry, Tracing
from ports.unit_of_work import Tx, UnitOfWork
from ports.workspaces import Workspaces

FILE_LIMITS = FileLimits()
"""Default limits of a feed file."""
ProcessName = NewType("ProcessName", str)
"""Name of a process in telemetry, such as `api`."""


def create_access_service(
    credentials: CredentialLookup, keys: ActiveKeys, sessions: Sessions, tokens: PostgresTokenStore
) -> AccessService:
    """Create the service that verifies API keys, sessions and OAuth tokens."""
    return AccessService(credentials, keys, {b"p": sessions, b"a": tokens})


def create_connectors(installed: PluggyConnectors, uow: UnitOfWork, network: NetworkLog, codec: Codec) -> Connectors:
    """Create the connectors: those of the permitted plugins, and the one that reads catalogues on the network."""
    return CombinedConnectors(installed, uow, network, codec)


def create_token_hasher(access: AccessService) -> TokenHasher:
    """Return the function that hashes OAuth tokens and app secrets for storage."""
    return access.compute_digest


def create_feed_cursor_signer(keys: ActiveKeys) -> FeedCursorSigner:
    """Create the signer of feed cursors."""
    return FeedCursorSigner(keys.cursor_keys)


def create_identity_providers(settings: Settings, http: GuardedClient) -> IdentityProviders:
    """Create the client of organisations' identity providers."""
    return OidcProviders(HttpOutbound(http, settings.allow_private_hosts))


def create_file_targets(settings: Settings, http: GuardedClient, clock: Clock) -> FileTargets:
    """Create the clients of the targets of scheduled exports."""
    from adapters.sftp import SftpTarget  # noqa: PLC0415  slow to import, and most processes send no files

    hosts = settings.allow_private_hosts
    bucket = BucketTarget(HttpOutbound(http, hosts, UPLOAD_BOUNDS), clock)
    return FileTargets({TargetKind.BUCKET: bucket, TargetKind.SFTP: SftpTarget(VettedSockets(hosts))})


def create_pool(settings: Settings, vault: AesGcmVault) -> Pool:
    """Create the pool of database connections.

    Each connection holds an advisory lock for each operator's secret that this process has loaded. Processes check
    these locks before they activate a new secret.
    """
    return Pool(
        settings.database_url,
        size=settings.pool_size,
        loaded_key_ids=vault.secret_ids,
        owner_conninfo=settings.owner_url,
    )


def create_object_store(settings: Settings, keys: ActiveKeys) -> ObjectStore:
    """Create the object store at JOINERY_OBJECTS_URL, in a folder or in an S3 bucket."""
    if settings.objects_url.startswith("s3://"):
        return S3Objects(settings.objects_url)
    return FileObjects(Path(unquote(urlsplit(settings.objects_url).path)), settings.base_url, keys.link_keys)


def create_rate_limits(settings: Settings) -> RateLimits:
    """Create the rate limits: shared through Redis if JOINERY_REDIS_URL is set, else separate in each process."""
    return RedisLimits(settings.redis_url) if settings.redis_url else MemoryLimits()


def _build_fork_server_command(module: str, settings: Settings, *arguments: str) -> list[str]:
    """Build the command line of the fork server in the module `entrypoints.<module>`.

    The fork server ends when this process ends, and limits the memory of its children.
    """
    started_by = (str(os.getpid()), str(settings.reader_memory))
    return [sys.executable, "-P", "-m", f"entrypoints.{module}", *started_by, *arguments]


def create_feed_readers(settings: Settings, codec: Codec, file_limits: FileLimits = FILE_LIMITS) -> ProcessFeedReaders:
    """Create the feed readers, which run in separate processes; `file_limits` apply to each feed file."""
    arguments = (
        get_release_version(),
        str(Path(settings.plugins_file).resolve()),
        codec.encode(asdict(file_limits)).decode(),
    )
    command, bounds = (
        _build_fork_server_command("reader", settings, *arguments),
        ReaderLimits(memory_mib=settings.reader_memory),
    )
    return ProcessFeedReaders(command, codec, max_readers=settings.worker_readers, limits=bounds)


def create_image_converter(settings: Settings) -> ProcessImageConverter:
    """Create the image converter, which runs in separate processes with the memory limit of feed readers."""
    return ProcessImageConverter(
        _build_fork_server_command("imager", settings), max_conversions=max(1, settings.worker_readers // 2)
    )


def create_parser_processes(settings: Settings, max_processes: int | None = None) -> ProcessCalls:
    """Create the processes that parse web documents, mail and request bodies with many values, and that render category lists.

    Args:
        settings: The settings of this process, which contain the memory limit of feed readers and parsers.
        max_processes: Maximum concurrent processes; by default as many as feed readers.
    """
    return ProcessCalls(
        _build_fork_server_command("parser", settings),
        max_calls=max_processes or settings.worker_readers,
        raises=READER_ERRORS,
    )


def create_pdf_printer(settings: Settings, workspaces: Workspaces) -> ProcessPdfPrinter:
    """Create the renderer of PDF, which runs in separate processes with the memory limit of feed readers."""
    return ProcessPdfPrinter(_build_fork_server_command("printer", settings), workspaces)


def create_pydantic_models(settings: Settings, schemas: SchemaValidator) -> PydanticModels | None:
    """Create the language models in JOINERY_MODELS; return None if the setting is empty. Raises SettingsError."""
    if settings.models is None:
        return None
    if (provider := settings.provider) is not None:
        server = ModelServer(provider.api, provider.url, provider.key, f"Joinery/{get_release_version()}")
        prices = {name: TokenPrice(*price) for name, price in provider.prices.items()}
        return PydanticModels(server, schemas, provider.model, prices, provider.routes)
    try:
        script = ModelScript.from_file(Path(unquote(urlsplit(settings.models).path)))
    except InvalidScript as error:
        raise SettingsError(f"The script of model answers in JOINERY_MODELS cannot be loaded: {error}") from error
    return PydanticModels(script, schemas, MODEL_NAME, {MODEL_NAME: TokenPrice(0, 0)})


def create_language_models(models: PydanticModels | None) -> LanguageModels | None:
    """Return the language models for requests with structured answers; None if none are configured."""
    return models


def create_assistant_engine(models: PydanticModels | None) -> AssistantEngine | None:
    """Create the engine of the assistant; return None if no model is configured."""
    return PydanticAssistantEngine(models) if models is not None else None


def create_turn_service(
    uow: UnitOfWork, clock: Clock, engine: AssistantEngine | None, ledger: CreditLedger
) -> TurnService:
    """Create the use cases of the assistant's turns."""
    settings = AssistantSettingsService(engine.is_available if engine else None)
    conversations = ConversationService(settings, AssistantPreferencesService())
    return TurnService(uow, clock, engine, AssistantBudget(ledger), conversations)


def create_payments(settings: Settings) -> Payments | None:
    """Create the client of Stripe; return None if JOINERY_STRIPE_SECRET_KEY is empty. The service then sells nothing."""
    if (account := settings.stripe) is None:
        return None
    from adapters.stripe_payments import StripePayments  # noqa: PLC0415  slow to import, and most processes do not pay

    return StripePayments(
        account.secret_key,
        account.publishable_key,
        account.webhook_secret,
        computes_tax=account.computes_tax,
        url=account.url,
    )


async def _read_levels(tx: Tx) -> Mapping[str, int]:
    return {SOURCES: await tx[SourceStore].count(), STORED_BYTES: await tx[StorageLedger].count_used_bytes()}


def create_usage_service() -> UsageService:
    """Create the use cases of usage, which measure sources and stored bytes."""
    return UsageService(_read_levels)


def create_credit_ledger() -> CreditLedger:
    """Create the use cases of credit."""
    return CreditLedger(render_balance, render_lot)


def create_billing_service(
    uow: UnitOfWork, clock: Clock, payments: Payments | None, usage: UsageService, updater: PurchaseUpdater
) -> BillingService:
    """Create the use cases of billing accounts."""
    return BillingService(uow, clock, payments, usage, updater.apply)


def create_purchase_updater(ledger: CreditLedger) -> PurchaseUpdater:
    """Create the updater of purchases of credit."""
    return PurchaseUpdater(ledger, render_purchase, resume_judging)


def create_mailer(settings: Settings, clock: Clock) -> Mailer | None:
    """Create the SMTP client for JOINERY_SMTP_URL; return None if the setting is empty. Mail then stays in the outbox."""
    server_settings = settings.smtp
    if server_settings is None:
        return None
    relay = MailServer(
        server_settings.host,
        server_settings.port,
        server_settings.sender,
        server_settings.uses_implicit_tls,
        server_settings.requires_start_tls,
        server_settings.user,
        server_settings.password,
    )
    return SmtpMailer(relay, clock)


def create_waiting_request_counter(pool: Pool) -> WaitingRequestCounter:
    """Return a function that counts the requests that wait for a database connection."""
    return lambda: pool.waiting_count


def create_readiness_checks(pool: Pool, schema: SchemaCheck, keys: ActiveKeys) -> ReadinessChecks:
    """Create the checks of /readyz by name."""

    async def is_database_available() -> bool:
        async with pool.connect_to_coordinator() as link:
            await link.cursor.execute("SELECT 1")
        return True

    async def is_schema_compatible() -> bool:
        return await schema.check() is None

    async def has_keys() -> bool:
        return bool(keys.api_key_hash_key)

    return ReadinessChecks(database=is_database_available, schema=is_schema_compatible, keys=has_keys)


def create_telemetry(settings: Settings, process: ProcessName) -> Telemetry | None:
    """Create the exporter to JOINERY_OTLP_URL, or return None if the setting is empty.

    Without the setting, the exporter's package is not imported. Raises SettingsError if it is not installed.
    """
    if settings.monitoring.otlp_url is None:
        return None
    try:
        from adapters.otlp.telemetry import OtlpTelemetry  # noqa: PLC0415  an extra, and slow to import
    except ModuleNotFoundError as error:
        raise SettingsError(
            "JOINERY_OTLP_URL is set, but the OTLP exporter is not installed. Run pip install 'joinery[otlp]'."
        ) from error
    return OtlpTelemetry(settings.monitoring.otlp_url, f"joinery-{process}", get_release_version())


def create_value_reencrypter(
    keyring: KeyRingKeeper, vault: Vault, values: EncryptedValues, connectors: Connectors, clock: Clock
) -> ValueReencrypter:
    """Create the component that re-encrypts stored values after a change of the operator's secret."""

    def destination(connector: str, config: Mapping[str, Any]) -> str | None:
        info = connectors.find_connector(connector)
        return info.describe_credential_destination(config) if info else None

    return ValueReencrypter(keyring, vault, values, destination, clock)


def create_tracing(telemetry: Telemetry | None) -> Tracing | None:
    """Return the exporter of spans; None without a telemetry exporter."""
    return telemetry.tracing if telemetry is not None else None
