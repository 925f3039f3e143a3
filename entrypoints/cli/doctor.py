"""`joinery doctor`: what is configured, what can be reached, what is wrong and what to do about it."""

import argparse
import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from adapters.arq.queue import ArqQueue
from adapters.postgres.migrate import applied, available
from adapters.postgres.privileges import APP, SYSTEM
from domain.kernel.errors import DomainError
from entrypoints import settings
from entrypoints.cli import storage
from entrypoints.cli.orgs import environment
from entrypoints.container import opened
from entrypoints.factories import product_version
from entrypoints.settings import Settings, SettingsError
from entrypoints.up.errors import UpError


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at: `state` is ok, warning or wrong; `detail` says what was seen, or what to do."""

    name: str
    state: str
    detail: str


async def doctor(options: argparse.Namespace) -> int:
    """Exit code 1 when something is wrong."""
    findings = [Finding("joinery", "ok", f"version {product_version()}")]
    told: dict[str, Any] = {}
    try:
        configured = settings.from_environment(environment(options))
    except (SettingsError, UpError) as error:
        findings.append(Finding("settings", "wrong", str(error)))
    else:
        findings.append(Finding("settings", "ok", f"API at {configured.base_url}"))
        for look in (_database, _queue, _objects, _connectors, _models):
            findings.append(await _seen(look, configured))
        if all(finding.state == "ok" for finding in findings if finding.name in ("database", "objects")):
            findings += await _stored(configured, told, sweep=options.sweep)
    if options.json:
        print(json.dumps({"findings": [asdict(finding) for finding in findings], **told}))
    else:
        for finding in findings:
            print(f"{finding.state:<8} {finding.name:<12} {finding.detail}")
    return 1 if any(finding.state == "wrong" for finding in findings) else 0


async def _seen(look: Callable[[Settings], Awaitable[Finding]], configured: Settings) -> Finding:
    try:
        return await look(configured)
    except (DomainError, SettingsError, OSError) as error:
        return Finding(look.__name__.strip("_"), "wrong", str(error))


async def _database(configured: Settings) -> Finding:
    present = set(await applied(configured.database_url))
    missing = [name for name, _ in available() if name not in present]
    if missing:
        return Finding("database", "wrong", f"{len(missing)} migrations are missing; run `joinery migrate`.")
    async with opened(configured) as container, container.pool().system() as link:
        cursor = await link.cursor.execute(
            "SELECT current_setting('server_version'), bool_or(rolsuper OR rolbypassrls) FROM pg_roles "
            "WHERE rolname = ANY(%s)",
            ([APP, SYSTEM],),
        )
        row = await cursor.fetchone()
    version, unbound = row or ("?", True)
    if unbound:
        return Finding(
            "database", "wrong", f"Row-level security does not bind {APP} or {SYSTEM}; take that role's rights away."
        )
    return Finding("database", "ok", f"PostgreSQL {version}, up to date, row-level security in force")


async def _queue(configured: Settings) -> Finding:
    if not configured.redis_url:
        return Finding("queue", "warning", "JOINERY_REDIS_URL is not set; workers look into the database instead.")
    queue = ArqQueue(configured.redis_url)
    try:
        if await queue.healthy():
            return Finding("queue", "ok", "Redis answers")
        return Finding(
            "queue", "wrong", "Redis does not answer; nothing is lost, but wakes take longer. Check JOINERY_REDIS_URL."
        )
    finally:
        await queue.close()


async def _objects(configured: Settings) -> Finding:
    if configured.objects_url.startswith("s3://"):
        return Finding("objects", "ok", f"bucket {urlsplit(configured.objects_url).netloc}")
    folder = Path(unquote(urlsplit(configured.objects_url).path))
    folder.mkdir(parents=True, exist_ok=True)  # noqa: ASYNC240  one command, nothing waits
    return Finding("objects", "ok", f"folder {folder}")


async def _stored(configured: Settings, told: dict[str, Any], *, sweep: bool) -> list[Finding]:
    """What lies in the object store, in `told` word by word; with `sweep` after what may go is gone."""
    try:
        async with opened(configured) as container:
            swept = [Finding("swept", "ok", await storage.sweep(container))] if sweep else []
            seen = await storage.lying(container)
    except (DomainError, OSError) as error:
        return [Finding("storage", "wrong", str(error))]
    told["storage"] = seen.as_json()
    return swept + [Finding(name, "ok", sentence) for name, sentence in seen.sentences().items()]


async def _connectors(configured: Settings) -> Finding:
    async with opened(configured) as container:
        names = [info.name for info in container.connectors().infos()]
    return Finding(
        "connectors", "ok" if names else "wrong", ", ".join(names) or "none loads; see `joinery plugins check`"
    )


async def _models(configured: Settings) -> Finding:
    if configured.models is None:
        return Finding("models", "ok", "none is asked")
    async with opened(configured) as container:
        container.models()
    found = configured.provider
    asked = f"{found.model} at {found.url} ({found.api})" if found else configured.models
    return Finding("models", "ok", f"asked about columns that nothing else understands, and by the judge: {asked}")
