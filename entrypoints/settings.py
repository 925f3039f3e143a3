"""Settings from the environment, read once; docs/configuration.md describes every variable."""

import errno
import os
import re
import stat
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from adapters.pydantic_ai.pricing import find_list_price
from entrypoints.errors import SettingsError

MIN_SECRET_LENGTH = 32
"""Minimum characters of the operator's secret."""
MAX_FILE_BYTES = 64 << 10
"""Maximum bytes of a file that contains a setting."""


PROVIDER_URLS: Final[Mapping[str, str]] = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
}
"""Default URLs of the supported model APIs."""
STRIPE_URL: Final = "https://api.stripe.com"
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_MAILBOX = re.compile(r"[^@\s<>,;]{1,64}@[^@\s<>,;]{1,253}")
MODEL_TASKS: Final = ("mappings", "matching", "categories", "assistant")
"""Tasks to which JOINERY_MODEL_ROUTES can assign models."""
_PRICE = re.compile(r"([!-~]{1,100})=([0-9]{1,12})/([0-9]{1,12})")
_MODEL_NAME = re.compile(r"[!-<>-~]{1,100}")


@dataclass(frozen=True, slots=True)
class ModelProvider:
    """Provider of language models.

    Attributes:
        api: The kind of API, a key of PROVIDER_URLS.
        url: The API's URL.
        model: The default model.
        prices: Micro-US-dollars per million input and output tokens by model. A model without a price is not used.
        routes: Models by task, for tasks that do not use the default model.
        key: The API key.
    """

    api: str
    url: str
    model: str
    prices: Mapping[str, tuple[int, int]]
    routes: Mapping[str, str]
    key: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Monitoring:
    """Addresses at which metrics are served and to which telemetry is sent.

    Attributes:
        host: The address on which /metrics is served.
        api_port: The port of /metrics of the API; 0 disables it, as for the other ports.
        worker_port: The port of /metrics of workers.
        webhooks_port: The port of /metrics of workers that only deliver webhooks.
        scheduler_port: The port of /metrics of the scheduler.
        otlp_url: The URL of an OTLP collector of spans and metrics.
    """

    host: str = "127.0.0.1"
    api_port: int = 0
    worker_port: int = 0
    webhooks_port: int = 0
    scheduler_port: int = 0
    otlp_url: str | None = None


@dataclass(frozen=True, slots=True)
class SmtpServer:
    """SMTP server for outgoing mail.

    Attributes:
        host: The server's host name.
        port: The server's port.
        sender: The address from which mail is sent.
        uses_implicit_tls: Whether the connection uses TLS from its first byte.
        requires_start_tls: Whether STARTTLS is required.
        user: The user name.
        password: The password.
    """

    host: str
    port: int
    sender: str
    uses_implicit_tls: bool
    requires_start_tls: bool
    user: str | None = None
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class StripeAccount:
    """Account of the payment provider Stripe.

    Attributes:
        publishable_key: The key that the browser uses.
        url: The base URL of the API.
        computes_tax: Whether Stripe computes taxes.
        secret_key: The key of the service.
        webhook_secret: The secret with which Stripe signs notifications.
    """

    publishable_key: str
    url: str
    computes_tax: bool
    secret_key: str = field(repr=False)
    webhook_secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a process, from the environment variables `JOINERY_…`."""

    database_url: str
    redis_url: str | None
    objects_url: str
    secret: str
    """Operator's secret, from which the keys for encrypted values, cursors and signed links are derived."""
    base_url: str
    docs_url: str
    status_url: str = ""
    """URL of the API that the scheduler requests to measure the API's availability for the status page."""
    owner_url: str = field(default="", repr=False)
    """Database URL with the login of the schema owner: for migrations, operators' commands and the scheduler."""
    host: str = "127.0.0.1"
    port: int = 8080
    monitoring: Monitoring = Monitoring()
    operators_port: int = 0
    """Port of the operators' page on the loopback address; 0 for none."""
    plugins_file: str = "plugins.toml"
    allow_private_hosts: frozenset[str] = frozenset()
    trusted_proxies: frozenset[str] = frozenset()
    mail_domain: str | None = None
    pool_size: int = 8
    worker_lanes: int = 64
    worker_readers: int = 4
    reader_memory: int = 1024
    """Memory limit of a feed reader in MiB."""
    degraded_after: int = 3
    """Consecutive failed runs after which the status of a source becomes degraded."""
    blocked_after: int = 10
    """Consecutive failed runs after which the status of a source becomes blocked."""
    work_dir: Path | None = None
    """Folder for temporary files, such as copies of stored files while they are read; None for the system's temporary folder."""
    log_level: str = "info"
    access_log: bool = True
    """True if the API logs a line for each request."""
    drain_seconds: int = 5
    """Seconds for which the API keeps serving after a stop signal, while /readyz fails."""
    resolver: str | None = None
    """Name server, as `address` or `address:port`; None for those of the machine."""
    http2: bool = False
    """True if the API accepts HTTP/2 without TLS, by upgrade or prior knowledge."""
    models: str | None = None
    """Language models for column mappings, the judge, agents and the assistant: a key of PROVIDER_URLS or `scripted:///…`; None for none."""
    provider: ModelProvider | None = None
    """Model provider if `models` is `openai` or `anthropic`, else None."""
    agents_enabled: bool = True
    """True if the organisations' agents may propose and apply changes."""
    smtp: SmtpServer | None = None
    """SMTP server for outgoing mail; if None, mail stays in the outbox."""
    stripe: StripeAccount | None = None
    """Payment provider; if None, the service sells nothing."""
    former_secrets: tuple[str, ...] = ()
    """Previous secrets, with which stored values may still be encrypted."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """The current secret, then the former ones."""
        return self.secret, *self.former_secrets

    @property
    def token_prices(self) -> Mapping[str, tuple[int, int]]:
        """The prices of language models: micro-US-dollars per million input and output tokens, by model."""
        return self.provider.prices if self.provider is not None else {}


def resolve_file_settings(env: Mapping[str, str]) -> dict[str, str]:
    """Return a copy of the environment in which each `JOINERY_X_FILE` is replaced by `JOINERY_X` with the file's content.

    Surrounding white space is removed. An empty file has the effect of an empty variable.

    Raises:
        SettingsError: Both variables are set, or the file cannot be read, is larger than MAX_FILE_BYTES, or has several lines
            or control characters. The message never contains the value.
    """
    found = dict(env)
    for name in [name for name in env if name.startswith("JOINERY_") and name.endswith("_FILE")]:
        path, target = found.pop(name), name.removesuffix("_FILE")
        if not path:
            continue
        if env.get(target):
            raise SettingsError(f"{target} and {name} are both set; set only one of them.")
        try:
            found[target] = _read_value(Path(path))
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not one line of UTF-8 text"
            raise SettingsError(f"The file {path!r} in {name} is unreadable: {reason}.") from None
    return found


def _read_value(path: Path) -> str:
    """Return the setting's value in the file. Raises OSError or ValueError."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):  # opening a pipe would wait for its writer
        raise OSError(errno.EINVAL, "it is not a regular file")
    if found.st_size > MAX_FILE_BYTES:
        raise OSError(errno.EFBIG, f"it is larger than {MAX_FILE_BYTES >> 10} KiB")
    with path.open("rb") as file:
        text = file.read(MAX_FILE_BYTES).decode("utf-8-sig").strip()
    if any(unicodedata.category(one) == "Cc" for one in text):
        raise ValueError("control characters")
    return text


def get_release_version() -> str:
    """Return the version of this release of Joinery; `0` if Joinery is not installed as a package."""
    try:
        return version("joinery")
    except PackageNotFoundError:
        return "0"


def read_plugins_path(env: Mapping[str, str]) -> Path:
    """Return the path of the plugin allowlist: JOINERY_PLUGINS, or plugins.toml, which may be missing.

    Raises SettingsError if the file in JOINERY_PLUGINS does not exist.
    """
    named = env.get("JOINERY_PLUGINS", "")
    # ignoring a missing file would remove its restrictions
    if named and not Path(named).is_file():
        raise SettingsError(f"The file {named} in JOINERY_PLUGINS does not exist.")
    return Path(named or "plugins.toml")


def read_integer(env: Mapping[str, str], name: str, default: int) -> int:
    """Return the variable's value as a non-negative integer; `default` if the variable is empty. Raises SettingsError."""
    text = env.get(name, "")
    if not text:
        return default
    if not text.isdigit():
        raise SettingsError(f"{name} must be a whole number, not {text!r}.")
    return int(text)


def _read_integers(env: Mapping[str, str]) -> dict[str, Any]:
    """Return the integer settings by field name, from the variables `JOINERY_…` or the fields' defaults. Raises SettingsError."""
    whole: list[Any] = [row for row in fields(Settings) if row.type is int]
    found = {row.name: read_integer(env, f"JOINERY_{row.name.upper()}", row.default) for row in whole}
    if not 1 <= found["degraded_after"] <= found["blocked_after"]:
        raise SettingsError("JOINERY_DEGRADED_AFTER must be at least 1, and JOINERY_BLOCKED_AFTER at least as large.")
    return found


def _read_switch(env: Mapping[str, str], name: str, *, default: str = "off") -> bool:
    text = env.get(name, "").strip().lower() or default
    if text not in ("on", "off"):
        raise SettingsError(f"{name} must be `on` or `off`, not {text!r}.")
    return text == "on"


def _read_name_list(env: Mapping[str, str], name: str) -> frozenset[str]:
    """Return the comma-separated names in the variable, in lower case."""
    return frozenset(part.strip().lower() for part in env.get(name, "").split(",") if part.strip())


def _read_secret(env: Mapping[str, str]) -> str:
    secret = env.get("JOINERY_SECRET", "")
    if len(secret) < MIN_SECRET_LENGTH:
        raise SettingsError(
            f"JOINERY_SECRET must have at least {MIN_SECRET_LENGTH} characters. Create one with `openssl rand -hex 32`."
        )
    return secret


def _read_former_secrets(env: Mapping[str, str], current: str) -> tuple[str, ...]:
    parts = [part.strip() for part in env.get("JOINERY_SECRET_FORMER", "").split(",")]
    former = tuple(dict.fromkeys(part for part in parts if part and part != current))
    if any(len(part) < MIN_SECRET_LENGTH for part in former):
        raise SettingsError(
            f"JOINERY_SECRET_FORMER must be a comma-separated list of secrets of at least {MIN_SECRET_LENGTH} characters."
        )
    return former


def _read_models(env: Mapping[str, str]) -> str | None:
    named = env.get("JOINERY_MODELS", "").strip()
    if named and named not in PROVIDER_URLS and not named.startswith("scripted:/"):
        raise SettingsError(
            f"JOINERY_MODELS must be `openai`, `anthropic` or `scripted:///path/to/script.json`, not {named!r}."
        )
    return named or None


def _read_provider(env: Mapping[str, str]) -> ModelProvider | None:
    """Return the model provider if JOINERY_MODELS names its API, else None. Error messages never contain the API key."""
    api = _read_models(env)
    if api is None or api not in PROVIDER_URLS:
        return None
    url = env.get("JOINERY_MODELS_URL", "").strip().rstrip("/") or PROVIDER_URLS[api]
    model, key = env.get("JOINERY_MODEL", "").strip(), env.get("JOINERY_MODELS_KEY", "").strip() or None
    _check_models_url(url, read_private_hosts(env))
    if key is None and (api == "anthropic" or url == PROVIDER_URLS[api]):
        raise SettingsError("JOINERY_MODELS_KEY is not set. The provider requires a key.")
    if key is not None and not (key.isascii() and key.isprintable()):
        raise SettingsError("JOINERY_MODELS_KEY must have printable ASCII characters only.")
    prices = _read_prices(env, api, url)
    if model not in prices:
        raise SettingsError(
            "JOINERY_MODEL must name a model in JOINERY_MODEL_PRICES. Add its price there, such as `small-1=250000/2000000`."
        )
    return ModelProvider(api, url, model, prices, _read_routes(env, prices), key)


def _check_models_url(url: str, allowed_hosts: frozenset[str]) -> None:
    """Raise SettingsError if the URL is invalid, or uses http for a host that is neither local nor allowed."""
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError:
        raise SettingsError("JOINERY_MODELS_URL is not a valid URL.") from None
    if not host or parts.scheme not in ("http", "https") or parts.username or parts.query or parts.fragment:
        raise SettingsError("JOINERY_MODELS_URL must be an http or https URL without user, query and fragment.")
    is_local = host in _LOOPBACK or host in allowed_hosts or f"{host}:{port}" in allowed_hosts
    if parts.scheme == "http" and not is_local:
        raise SettingsError("JOINERY_MODELS_URL must be https, unless JOINERY_ALLOW_PRIVATE_HOSTS names its host.")


def _read_prices(env: Mapping[str, str], api: str, url: str) -> Mapping[str, tuple[int, int]]:
    """Return the prices by model. The price of a bare name is the provider's list price."""
    given = [part.strip() for part in env.get("JOINERY_MODEL_PRICES", "").split(",") if part.strip()]
    prices: dict[str, tuple[int, int]] = {}
    for part in given:
        if found := _PRICE.fullmatch(part):
            prices[found[1]] = int(found[2]), int(found[3])
        elif _MODEL_NAME.fullmatch(part):
            price = find_list_price(api, part) if url == PROVIDER_URLS[api] else None
            if price is None:
                raise SettingsError(
                    f"JOINERY_MODEL_PRICES names `{part}` without a price, and the list prices of {url} do not contain exactly this "
                    f"name. Add its price, such as `{part}=250000/2000000`."
                )
            prices[part] = price.input_price, price.output_price
        else:
            raise SettingsError(
                "JOINERY_MODEL_PRICES must be a comma-separated list of `model=input/output`: micro-US-dollars per million tokens, "
                "or `model` for the provider's list price."
            )
    return prices


def _read_routes(env: Mapping[str, str], prices: Mapping[str, tuple[int, int]]) -> Mapping[str, str]:
    """Return the models by task."""
    parts = [part.partition("=") for part in env.get("JOINERY_MODEL_ROUTES", "").split(",") if part.strip()]
    routes = {task.strip(): model.strip() for task, _, model in parts}
    if (unknown := next((task for task in routes if task not in MODEL_TASKS), None)) is not None:
        raise SettingsError(
            f"JOINERY_MODEL_ROUTES must be a comma-separated list of `task=model`. The tasks are {', '.join(MODEL_TASKS)}, not "
            f"{unknown!r}."
        )
    if (unpriced := next((model for model in routes.values() if model not in prices), None)) is not None:
        raise SettingsError(
            f"JOINERY_MODEL_ROUTES names {unpriced!r}, which is not in JOINERY_MODEL_PRICES. Add its price there."
        )
    return routes


def _read_otlp_url(env: Mapping[str, str]) -> str | None:
    """Return the URL of the OTLP collector, or None. Error messages never contain the URL, which may include a password."""
    url = env.get("JOINERY_OTLP_URL", "").strip().rstrip("/")
    if not url:
        return None
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and parts.hostname and (parts.port or 1)
    except ValueError:
        known = None
    if not known or parts.username or parts.query or parts.fragment:
        raise SettingsError(
            "JOINERY_OTLP_URL must be the http or https URL of a collector without user, query and fragment, such as "
            "`http://localhost:4318`. Set credentials in OTEL_EXPORTER_OTLP_HEADERS."
        )
    return url


def _read_stripe(env: Mapping[str, str]) -> StripeAccount | None:
    """Return the Stripe account, or None. Error messages never contain a key."""
    names = ("JOINERY_STRIPE_SECRET_KEY", "JOINERY_STRIPE_PUBLISHABLE_KEY", "JOINERY_STRIPE_WEBHOOK_SECRET")
    secret_key, publishable_key, webhook_secret = values = [env.get(name, "").strip() for name in names]
    if not any(values):
        return None
    missing = [name for name, value in zip(names, values, strict=True) if not value]
    if missing:
        raise SettingsError(f"{' and '.join(missing)} must be set for payments by Stripe.")
    url = env.get("JOINERY_STRIPE_URL", "").strip().rstrip("/") or STRIPE_URL
    if not url.startswith(("https://", "http://127.0.0.1:", "http://localhost:")):
        raise SettingsError("JOINERY_STRIPE_URL must be an https URL.")
    return StripeAccount(publishable_key, url, _read_switch(env, "JOINERY_STRIPE_TAX"), secret_key, webhook_secret)


def _read_smtp(env: Mapping[str, str], base_url: str) -> SmtpServer | None:
    """Return the SMTP server, or None. Error messages never contain the URL, which includes a password."""
    url = env.get("JOINERY_SMTP_URL", "").strip()
    if not url:
        return None
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("smtp", "smtps") and parts.hostname and (parts.port or 1)
        query = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query)))
    except ValueError:
        known, query = None, {}
    domain, sender = urlsplit(base_url).hostname or "localhost", query.pop("from", "")
    sender = sender or f"joinery@{domain}"
    if not known or not parts.hostname or query or parts.path.strip("/") or not _MAILBOX.fullmatch(sender):
        raise SettingsError(
            "JOINERY_SMTP_URL must be `smtp://user:password@host:587?from=joinery@shop.example`, or `smtps://…` for TLS from the start."
        )
    implicit, loopback = parts.scheme == "smtps", parts.hostname in _LOOPBACK
    return SmtpServer(
        host=parts.hostname,
        port=parts.port or (465 if implicit else 587),
        sender=sender,
        uses_implicit_tls=implicit,
        requires_start_tls=not implicit and not loopback,
        user=unquote(parts.username) if parts.username else None,
        password=unquote(parts.password) if parts.password else None,
    )


def _read_monitoring(env: Mapping[str, str]) -> Monitoring:
    return Monitoring(
        host=env.get("JOINERY_METRICS_HOST", "").strip() or "127.0.0.1",
        api_port=read_integer(env, "JOINERY_METRICS_PORT", 0),
        worker_port=read_integer(env, "JOINERY_WORKER_METRICS_PORT", 0),
        webhooks_port=read_integer(env, "JOINERY_WEBHOOKS_METRICS_PORT", 0),
        scheduler_port=read_integer(env, "JOINERY_SCHEDULER_METRICS_PORT", 0),
        otlp_url=_read_otlp_url(env),
    )


def read_owner_url(env: Mapping[str, str]) -> str:
    """Return the database URL with the login of the schema owner. Raises SettingsError."""
    url = env.get("JOINERY_MIGRATE_DATABASE_URL") or env.get("JOINERY_DATABASE_URL", "")
    if not url:
        raise SettingsError("JOINERY_DATABASE_URL is not set. Set it to the URL of the PostgreSQL database.")
    return url


def read_environment_secrets(env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the secrets in the environment, the current one first; empty if none is set. Raises SettingsError."""
    current = env.get("JOINERY_SECRET", "")
    return (current, *_read_former_secrets(env, current)) if current else ()


def read_private_hosts(env: Mapping[str, str]) -> frozenset[str]:
    """Return the hosts with private addresses to which JOINERY_ALLOW_PRIVATE_HOSTS permits requests."""
    return _read_name_list(env, "JOINERY_ALLOW_PRIVATE_HOSTS")


def read_settings(env: Mapping[str, str] | None = None) -> Settings:
    """Read the settings from `env`, by default the environment of this process. Raises SettingsError."""
    env = resolve_file_settings(os.environ if env is None else env)
    database_url = env.get("JOINERY_DATABASE_URL", "")
    if not database_url:
        raise SettingsError(
            "JOINERY_DATABASE_URL is not set. Set it to the URL of a PostgreSQL database, or use `joinery up`."
        )
    secret = _read_secret(env)
    host, integers = env.get("JOINERY_HOST", "127.0.0.1"), _read_integers(env)
    base_url = env.get("JOINERY_BASE_URL", f"http://{host}:{integers['port']}").rstrip("/")
    return Settings(
        database_url=database_url,
        owner_url=read_owner_url(env),
        redis_url=env.get("JOINERY_REDIS_URL") or None,
        objects_url=env.get("JOINERY_OBJECTS_URL") or f"file://{Path.cwd() / '.joinery' / 'objects'}",
        secret=secret,
        former_secrets=_read_former_secrets(env, secret),
        base_url=base_url,
        status_url=(env.get("JOINERY_STATUS_URL") or base_url).rstrip("/"),
        docs_url=env.get("JOINERY_DOCS_URL", base_url).rstrip("/"),
        host=host,
        **integers,
        monitoring=_read_monitoring(env),
        plugins_file=str(read_plugins_path(env)),
        allow_private_hosts=read_private_hosts(env),
        trusted_proxies=_read_name_list(env, "JOINERY_TRUSTED_PROXIES"),
        mail_domain=env.get("JOINERY_MAIL_DOMAIN", "").strip().lower() or None,
        work_dir=Path(env["JOINERY_WORK_DIR"]) if env.get("JOINERY_WORK_DIR") else None,
        log_level=env.get("JOINERY_LOG_LEVEL", "info").lower(),
        access_log=_read_switch(env, "JOINERY_ACCESS_LOG", default="on"),
        resolver=env.get("JOINERY_RESOLVER", "").strip() or None,
        http2=_read_switch(env, "JOINERY_HTTP2"),
        models=_read_models(env),
        provider=_read_provider(env),
        agents_enabled=_read_switch(env, "JOINERY_AGENTS", default="on"),
        smtp=_read_smtp(env, base_url),
        stripe=_read_stripe(env),
    )
