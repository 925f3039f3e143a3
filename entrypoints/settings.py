"""The environment, read once into a frozen value; every variable is described in docs/configuration.md."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

SHORTEST_SECRET: Final = 32
"""Characters of the operator's secret."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a process is given from outside (variables `JOINERY_…`)."""

    database_url: str
    redis_url: str | None
    objects_url: str
    secret: str
    """What sealed values, cursors and signed links stand under; kept in the data directory or given by the operator."""
    base_url: str
    docs_url: str
    host: str = "127.0.0.1"
    port: int = 8080
    metrics_port: int = 0
    plugins_file: str = "plugins.toml"
    allow_private_hosts: frozenset[str] = frozenset()
    trusted_proxies: frozenset[str] = frozenset()
    mail_domain: str | None = None
    pool_size: int = 8
    worker_lanes: int = 64
    worker_readers: int = 4
    reader_memory: int = 1024
    """MiB that one reader of a feed may take."""
    degraded_after: int = 3
    """Failed runs in a row that make a source degraded."""
    blocked_after: int = 10
    """Failed runs in a row that make it blocked."""
    work_dir: Path | None = None
    """Where snapshots are worked on; the system's temporary folder when there is none."""
    log_level: str = "info"
    http2: bool = False
    """Whether HTTP/2 is spoken in plain text, by upgrade or prior knowledge."""
    models: str | None = None
    """What is asked about columns that nothing else understands; nothing is when there is none."""
    former_secrets: tuple[str, ...] = ()
    """Secrets before this one, under which something may still stand."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """Every secret at hand, the current one first."""
        return self.secret, *self.former_secrets


class SettingsError(Exception):
    """A setting is missing or wrong; the message names the variable and the remedy."""


def integer(env: Mapping[str, str], name: str, default: int) -> int:
    """A whole number from 0 on. Raises SettingsError."""
    text = env.get(name, "")
    if not text:
        return default
    if not text.isdigit():
        raise SettingsError(f"{name} must be a whole number, not {text!r}.")
    return int(text)


def _thresholds(env: Mapping[str, str]) -> tuple[int, int]:
    degraded, blocked = integer(env, "JOINERY_DEGRADED_AFTER", 3), integer(env, "JOINERY_BLOCKED_AFTER", 10)
    if not 1 <= degraded <= blocked:
        raise SettingsError("JOINERY_DEGRADED_AFTER must be at least 1, and JOINERY_BLOCKED_AFTER no less than that.")
    return degraded, blocked


def _switch(env: Mapping[str, str], name: str) -> bool:
    text = env.get(name, "").strip().lower() or "off"
    if text not in ("on", "off"):
        raise SettingsError(f"{name} must be `on` or `off`, not {text!r}.")
    return text == "on"


def _names(env: Mapping[str, str], name: str) -> frozenset[str]:
    return frozenset(part.strip().lower() for part in env.get(name, "").split(",") if part.strip())


def _former_secrets(env: Mapping[str, str], current: str) -> tuple[str, ...]:
    parts = [part.strip() for part in env.get("JOINERY_SECRET_FORMER", "").split(",")]
    former = tuple(dict.fromkeys(part for part in parts if part and part != current))
    if any(len(part) < SHORTEST_SECRET for part in former):
        raise SettingsError(
            f"JOINERY_SECRET_FORMER must name secrets of at least {SHORTEST_SECRET} characters, with commas between."
        )
    return former


def _models(env: Mapping[str, str]) -> str | None:
    named = env.get("JOINERY_MODELS", "").strip()
    if named and not named.startswith("scripted:/"):
        raise SettingsError(f"JOINERY_MODELS must be `scripted:///path/to/script.json`, not {named!r}.")
    return named or None


def secrets_of(env: Mapping[str, str]) -> tuple[str, ...]:
    """The secrets that the environment names, the current one first. Raises SettingsError."""
    current = env.get("JOINERY_SECRET", "")
    return (current, *_former_secrets(env, current)) if current else ()


def private_hosts_of(env: Mapping[str, str]) -> frozenset[str]:
    """The hosts that the operator lets through although they are no public ones."""
    return _names(env, "JOINERY_ALLOW_PRIVATE_HOSTS")


def from_environment(env: Mapping[str, str] | None = None) -> Settings:
    """Read `JOINERY_…` variables. Raises SettingsError."""
    env = os.environ if env is None else env
    database_url = env.get("JOINERY_DATABASE_URL", "")
    if not database_url:
        raise SettingsError("JOINERY_DATABASE_URL is not set: name a PostgreSQL database, or use `joinery up`.")
    secret = env.get("JOINERY_SECRET", "")
    if len(secret) < SHORTEST_SECRET:
        raise SettingsError(
            f"JOINERY_SECRET must hold at least {SHORTEST_SECRET} characters; make one with `openssl rand -hex 32`."
        )
    host, port = env.get("JOINERY_HOST", "127.0.0.1"), integer(env, "JOINERY_PORT", 8080)
    degraded_after, blocked_after = _thresholds(env)
    base_url = env.get("JOINERY_BASE_URL", f"http://{host}:{port}").rstrip("/")
    return Settings(
        database_url=database_url,
        redis_url=env.get("JOINERY_REDIS_URL") or None,
        objects_url=env.get("JOINERY_OBJECTS_URL") or f"file://{Path.cwd() / '.joinery' / 'objects'}",
        secret=secret,
        former_secrets=_former_secrets(env, secret),
        base_url=base_url,
        docs_url=env.get("JOINERY_DOCS_URL", base_url).rstrip("/"),
        host=host,
        port=port,
        metrics_port=integer(env, "JOINERY_METRICS_PORT", 0),
        plugins_file=env.get("JOINERY_PLUGINS", "plugins.toml"),
        allow_private_hosts=private_hosts_of(env),
        trusted_proxies=_names(env, "JOINERY_TRUSTED_PROXIES"),
        mail_domain=env.get("JOINERY_MAIL_DOMAIN", "").strip().lower() or None,
        pool_size=integer(env, "JOINERY_POOL_SIZE", 8),
        worker_lanes=integer(env, "JOINERY_WORKER_LANES", 64),
        worker_readers=integer(env, "JOINERY_WORKER_READERS", 4),
        reader_memory=integer(env, "JOINERY_READER_MEMORY", 1024),
        degraded_after=degraded_after,
        blocked_after=blocked_after,
        work_dir=Path(env["JOINERY_WORK_DIR"]) if env.get("JOINERY_WORK_DIR") else None,
        log_level=env.get("JOINERY_LOG_LEVEL", "info").lower(),
        http2=_switch(env, "JOINERY_HTTP2"),
        models=_models(env),
    )
