"""The environment, read once into a frozen value; every variable is described in docs/configuration.md."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Settings:
    """What a process is given from outside (variables `JOINERY_…`)."""

    database_url: str
    redis_url: str | None
    objects_url: str
    secret: str
    """Key material for cursors, credential hashes and signed links; kept in the data directory or given by the operator."""
    base_url: str
    docs_url: str
    host: str = "127.0.0.1"
    port: int = 8080
    metrics_port: int = 0
    plugins_file: str = "plugins.toml"
    allow_private_hosts: frozenset[str] = frozenset()
    trusted_proxies: frozenset[str] = frozenset()
    mail_domain: str = "in.joinery.example"
    pool_size: int = 8
    worker_lanes: int = 4
    log_level: str = "info"
    http2: bool = False
    """Whether HTTP/2 is spoken in plain text, by upgrade or prior knowledge."""


class SettingsError(Exception):
    """A setting is missing or wrong; the message names the variable and the remedy."""


def _integer(env: Mapping[str, str], name: str, default: int) -> int:
    text = env.get(name, "")
    if not text:
        return default
    if not text.isdigit():
        raise SettingsError(f"{name} must be a whole number, not {text!r}.")
    return int(text)


def _switch(env: Mapping[str, str], name: str) -> bool:
    text = env.get(name, "").strip().lower() or "off"
    if text not in ("on", "off"):
        raise SettingsError(f"{name} must be `on` or `off`, not {text!r}.")
    return text == "on"


def _names(env: Mapping[str, str], name: str) -> frozenset[str]:
    return frozenset(part.strip().lower() for part in env.get(name, "").split(",") if part.strip())


def from_environment(env: Mapping[str, str] | None = None) -> Settings:
    """Read `JOINERY_…` variables. Raises SettingsError."""
    env = os.environ if env is None else env
    database_url = env.get("JOINERY_DATABASE_URL", "")
    if not database_url:
        raise SettingsError("JOINERY_DATABASE_URL is not set: name a PostgreSQL database, or use `joinery up`.")
    secret = env.get("JOINERY_SECRET", "")
    if len(secret) < 32:
        raise SettingsError("JOINERY_SECRET must hold at least 32 characters; make one with `openssl rand -hex 32`.")
    host, port = env.get("JOINERY_HOST", "127.0.0.1"), _integer(env, "JOINERY_PORT", 8080)
    base_url = env.get("JOINERY_BASE_URL", f"http://{host}:{port}").rstrip("/")
    return Settings(
        database_url=database_url,
        redis_url=env.get("JOINERY_REDIS_URL") or None,
        objects_url=env.get("JOINERY_OBJECTS_URL") or f"file://{Path.cwd() / '.joinery' / 'objects'}",
        secret=secret,
        base_url=base_url,
        docs_url=env.get("JOINERY_DOCS_URL", base_url).rstrip("/"),
        host=host,
        port=port,
        metrics_port=_integer(env, "JOINERY_METRICS_PORT", 0),
        plugins_file=env.get("JOINERY_PLUGINS", "plugins.toml"),
        allow_private_hosts=_names(env, "JOINERY_ALLOW_PRIVATE_HOSTS"),
        trusted_proxies=_names(env, "JOINERY_TRUSTED_PROXIES"),
        mail_domain=env.get("JOINERY_MAIL_DOMAIN", "in.joinery.example"),
        pool_size=_integer(env, "JOINERY_POOL_SIZE", 8),
        worker_lanes=_integer(env, "JOINERY_WORKER_LANES", 4),
        log_level=env.get("JOINERY_LOG_LEVEL", "info").lower(),
        http2=_switch(env, "JOINERY_HTTP2"),
    )
