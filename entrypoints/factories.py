"""Factories of adapters that depend on the settings."""

import os
import sys
from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final, NewType
from urllib.parse import unquote, urlsplit

from adapters.aesgcm import AesGcmVault
from adapters.files.objects import FileObjects
from adapters.http.client import GuardedClient
from adapters.http.outbound import MODELS, HttpOutbound
from adapters.llm.anthropic import AnthropicDialect
from adapters.llm.dialect import Dialect
from adapters.llm.models import ProviderModels
from adapters.llm.openai import OpenAiDialect
from adapters.llm.pricing import Price
from adapters.memory import MemoryLimits
from adapters.mime.reader import READER_ERRORS
from adapters.oidc.provider import OidcProviders
from adapters.postgres.nodes.pool import Pool
from adapters.postgres.oauth import PostgresTokenStore
from adapters.processes.calls import ProcessCalls, ProcessImages
from adapters.processes.feed_readers import ProcessFeedReaders, ReaderLimits
from adapters.redis.limits import RedisLimits
from adapters.s3.objects import S3Objects
from adapters.scripted import BadScript, ScriptedModels
from adapters.smtp import Relay, SmtpMailer
from adapters.wire.cursors import FeedCursors
from connectors.sdk.context import Limits as FileLimits
from domain.access.ports import Credentials
from domain.access.usecases import AccessService
from domain.ingestion.ports import Connectors
from domain.oauth.ports import TokenDigest
from domain.outbox.ports import Mailer
from domain.people.ports import Sessions
from domain.platform.ports import SchemaCheck
from domain.secrets.keys import WorkingKeys
from domain.secrets.ports import SealedValues, Vault
from domain.secrets.usecases.keyring import Keyring
from domain.secrets.usecases.resealing import Resealing
from domain.sso.ports import IdentityProviders
from entrypoints.dependencies import Readiness, Waiting
from entrypoints.errors import SettingsError
from entrypoints.settings import Settings
from ports.clock import Clock
from ports.codec import Codec
from ports.limits import Limits
from ports.models import Models
from ports.objects import Objects
from ports.schemas import Schemas
from ports.telemetry import Telemetry, Tracing

FILE_LIMITS = FileLimits()
ModelClient = NewType("ModelClient", GuardedClient)
Process = NewType("Process", str)
DIALECTS: Final[Mapping[str, type[Dialect]]] = {"openai": OpenAiDialect, "anthropic": AnthropicDialect}


def product_version() -> str:
    """Return the version of this release."""
    try:
        return version("joinery")
    except PackageNotFoundError:
        return "0"


def access_of(
    credentials: Credentials, keys: WorkingKeys, sessions: Sessions, tokens: PostgresTokenStore
) -> AccessService:
    """Create the verification of API keys, sessions and OAuth tokens."""
    return AccessService(credentials, keys, {b"p": sessions, b"a": tokens})


def digest_of(access: AccessService) -> TokenDigest:
    """Create the hash function of tokens."""
    return access.digest


def feed_cursors_of(keys: WorkingKeys) -> FeedCursors:
    """Create the signer of feed cursors."""
    return FeedCursors(keys.cursors)


def identity_providers_of(settings: Settings, http: GuardedClient) -> IdentityProviders:
    """Create the client of organisations' identity providers."""
    return OidcProviders(HttpOutbound(http, settings.allow_private_hosts))


def pool_of(settings: Settings, vault: AesGcmVault) -> Pool:
    """Create the connection pool, whose connections report the process's known secrets."""
    return Pool(settings.database_url, size=settings.pool_size, known=vault.keys, owner=settings.owner_url)


def objects_of(settings: Settings, keys: WorkingKeys) -> Objects:
    """Create the object store of JOINERY_OBJECTS_URL: a folder, or a bucket."""
    if settings.objects_url.startswith("s3://"):
        return S3Objects(settings.objects_url)
    return FileObjects(Path(unquote(urlsplit(settings.objects_url).path)), settings.base_url, keys.links)


def limits_of(settings: Settings) -> Limits:
    """Create rate budgets, in Redis if configured, else in each process."""
    return RedisLimits(settings.redis_url) if settings.redis_url else MemoryLimits()


def _command(module: str, settings: Settings, *more: str) -> list[str]:
    """Return the command line of a fork server, which ends with this process and limits its children's memory."""
    started_by = (str(os.getpid()), str(settings.reader_memory))
    return [sys.executable, "-P", "-m", f"entrypoints.{module}", *started_by, *more]


def feed_readers_of(settings: Settings, codec: Codec, limits: FileLimits = FILE_LIMITS) -> ProcessFeedReaders:
    """Create feed readers in separate processes, which limit a file by `limits`."""
    arguments = (product_version(), str(Path(settings.plugins_file).resolve()), codec.encode(asdict(limits)).decode())
    command, bounds = _command("reader", settings, *arguments), ReaderLimits(memory=settings.reader_memory)
    return ProcessFeedReaders(command, codec, most=settings.worker_readers, limits=bounds)


def image_converter_of(settings: Settings) -> ProcessImages:
    """Create the image converter in processes with the memory limit of feed readers."""
    return ProcessImages(_command("imager", settings), most=max(1, settings.worker_readers // 2))


def parsers_of(settings: Settings, most: int | None = None) -> ProcessCalls:
    """Create the processes that parse web documents, mail and dense bodies, and list categories, with feed readers' memory limit.

    Args:
        settings: The settings of this process.
        most: Maximum concurrent processes; by default as many as feed readers.

    """
    return ProcessCalls(_command("parser", settings), most=most or settings.worker_readers, raises=READER_ERRORS)


def model_client_of(settings: Settings) -> ModelClient:
    """Create the HTTP client of the model provider, at the operator's URL in any network."""
    return ModelClient(GuardedClient(allowed_hosts=_model_hosts(settings), version=product_version(), any_port=True))


def _model_hosts(settings: Settings) -> frozenset[str]:
    return frozenset({urlsplit(settings.provider.url).netloc}) if settings.provider is not None else frozenset()


def models_of(settings: Settings, schemas: Schemas, client: ModelClient) -> Models | None:
    """Create the models of JOINERY_MODELS; None if there are none. Raises SettingsError."""
    if settings.models is None:
        return None
    if (server_settings := settings.provider) is not None:
        prices = {name: Price(*price) for name, price in server_settings.prices.items()}
        outbound = HttpOutbound(client, _model_hosts(settings), MODELS)
        return ProviderModels(
            outbound,
            DIALECTS[server_settings.api](),
            schemas,
            server_settings.url,
            server_settings.model,
            prices,
            server_settings.key,
        )
    try:
        return ScriptedModels.of_file(Path(unquote(urlsplit(settings.models).path)), schemas)
    except BadScript as error:
        raise SettingsError(f"The script in JOINERY_MODELS is unreadable: {error}") from error


def mailer_of(settings: Settings, clock: Clock) -> Mailer | None:
    """Create the SMTP client of JOINERY_SMTP_URL; None if mail stays in the outbox."""
    server_settings = settings.smtp
    if server_settings is None:
        return None
    relay = Relay(
        server_settings.host,
        server_settings.port,
        server_settings.sender,
        server_settings.implicit_tls,
        server_settings.start_tls,
        server_settings.user,
        server_settings.password,
    )
    return SmtpMailer(relay, clock)


def waiting_of(pool: Pool) -> Waiting:
    """Return a function that counts requests waiting for a connection."""
    return lambda: pool.waiting


def readiness_of(pool: Pool, schema: SchemaCheck, keys: WorkingKeys) -> Readiness:
    """Create the checks of /readyz."""

    async def database() -> bool:
        async with pool.coordinator() as link:
            await link.cursor.execute("SELECT 1")
        return True

    async def schema_fits() -> bool:
        return await schema.check() is None

    async def has_keys() -> bool:
        return bool(keys.api_keys)

    return Readiness(database=database, schema=schema_fits, keys=has_keys)


def telemetry_of(settings: Settings, process: Process) -> Telemetry | None:
    """Create the exporter to JOINERY_OTLP_URL; None without one, and nothing is imported. Raises SettingsError."""
    if settings.watching.otlp_url is None:
        return None
    try:
        from adapters.otlp.telemetry import OtlpTelemetry  # noqa: PLC0415  an extra, and slow to import
    except ModuleNotFoundError as error:
        raise SettingsError(
            "JOINERY_OTLP_URL is set, but the OTLP exporter is not installed. Run pip install 'joinery[otlp]'."
        ) from error
    return OtlpTelemetry(settings.watching.otlp_url, f"joinery-{process}", product_version())


def resealing_of(
    keyring: Keyring, vault: Vault, values: SealedValues, connectors: Connectors, clock: Clock
) -> Resealing:
    """Create the re-encryption of all values after a change of the secret."""

    def destination(connector: str, config: Mapping[str, Any]) -> str | None:
        info = connectors.info(connector)
        return info.destination(config) if info else None

    return Resealing(keyring, vault, values, destination, clock)


def tracing_of(telemetry: Telemetry | None) -> Tracing | None:
    """Return the tracing of the telemetry; None without a collector."""
    return telemetry.tracing if telemetry is not None else None
