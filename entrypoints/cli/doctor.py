"""`joinery doctor`: what is configured, what can be reached, what is wrong and what to do about it."""

import argparse
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from adapters.arq.queue import ArqQueue
from adapters.postgres.maintenance import PurgeState
from adapters.postgres.migrate import available, read_compatibility
from adapters.postgres.privileges import APP, SYSTEM
from domain.kernel.clock import CLOCK, MAX_OFFSET
from domain.kernel.errors import DomainError
from entrypoints import settings
from entrypoints.cli import storage
from entrypoints.cli.orgs import environment
from entrypoints.container import opened
from entrypoints.factories import product_version
from entrypoints.settings import Settings, SettingsError
from entrypoints.up.errors import UpError

_CONFIRM: Final = "`joinery doctor --repair-schedule`"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at: `state` is ok, warning or wrong; `detail` says what was seen, or what to do."""

    name: str
    state: str
    detail: str


async def doctor(options: argparse.Namespace) -> int:
    """Exit code 1 when something is wrong."""
    findings = [Finding("joinery", "ok", f"version {product_version()}, schema {available()[-1][0]}")]
    report: dict[str, Any] = {}
    try:
        configured = settings.from_environment(environment(options))
    except (SettingsError, UpError) as error:
        findings.append(Finding("settings", "wrong", str(error)))
    else:
        findings.append(Finding("settings", "ok", f"API at {configured.base_url}"))
        for look in (_database, _queue, _objects, _connectors, _models):
            findings.append(await _seen(look, configured))
        if all(finding.state == "ok" for finding in findings if finding.name == "database"):
            findings += await _clock(configured, repair=options.repair_schedule)
        if all(finding.state == "ok" for finding in findings if finding.name in ("database", "objects")):
            findings += await _stored(configured, report, sweep=options.sweep)
    if options.json:
        print(json.dumps({"findings": [asdict(finding) for finding in findings], **report}))
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
    schema = await read_compatibility(configured.owner_url)
    if fault := schema.fault():
        return Finding("database", "wrong", fault)
    later = f"of a later, compatible release ({schema.unknown()[-1]})" if schema.unknown() else "up to date"
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
    return Finding("database", "ok", f"PostgreSQL {version}, schema {later}, row-level security in force")


async def _clock(configured: Settings, *, repair: bool) -> list[Finding]:
    """Compare the clocks and find implausible due times; `repair` makes those due and confirms the database's clock."""
    async with opened(configured) as container:
        guard, schedule = container.purge_guard(), container.schedule_repair()
        before = await guard.state()
        offset = CLOCK.offset()
        found = await (schedule.repair() if repair else schedule.find())
        if repair:
            await guard.confirm()
    return [
        _clock_finding(offset, before),
        _schedule_finding(found, before, repaired=repair),
        _purges_finding(before, confirmed=repair),
    ]


def _clock_finding(offset: float, state: PurgeState) -> Finding:
    database = f"the database's clock ({_database_time(state)})"
    if abs(offset) > MAX_OFFSET:
        return Finding(
            "clock",
            "warning",
            f"This machine's clock differs by {offset:+.0f} s from {database}; synchronise it by NTP.",
        )
    return Finding("clock", "ok", f"within {MAX_OFFSET:g} s of {database}")


def _schedule_finding(found: Mapping[str, int], state: PurgeState, *, repaired: bool) -> Finding:
    summary = ", ".join(f"{number} {name}" for name, number in found.items() if number)
    if not summary:
        return Finding("schedule", "ok", "all due times are plausible")
    if repaired:
        return Finding("schedule", "ok", f"made due now: {summary}")
    return Finding(
        "schedule",
        "wrong",
        f"Due implausibly late: {summary}. If the database's clock ({_database_time(state)}) is right, run {_CONFIRM}.",
    )


def _purges_finding(state: PurgeState, *, confirmed: bool) -> Finding:
    if not state.refused:
        return Finding("purges", "ok", f"last at {state.last_at:%Y-%m-%d %H:%M} UTC")
    times = f"the last one was at {state.last_at:%Y-%m-%d %H:%M} UTC, and the database's clock is at {_database_time(state)}"
    if confirmed:
        return Finding("purges", "ok", f"no longer refused: {times}")
    return Finding(
        "purges",
        "wrong",
        f"Refused: {times}. If the clock is right (the service was stopped), run {_CONFIRM}.",
    )


def _database_time(state: PurgeState) -> str:
    return f"{state.now:%Y-%m-%d %H:%M:%S} UTC"


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


async def _stored(configured: Settings, report: dict[str, Any], *, sweep: bool) -> list[Finding]:
    """Describe the object store, and add its figures to `report`; with `sweep`, delete unneeded objects first."""
    try:
        async with opened(configured) as container:
            swept = []
            if sweep:
                allowed = await container.purge_guard().claim()
                swept = [
                    Finding("swept", "ok", await storage.sweep(container))
                    if allowed
                    else Finding("swept", "wrong", "Nothing was swept, because purges are refused (see purges).")
                ]
            seen = await storage.lying(container)
    except (DomainError, OSError) as error:
        return [Finding("storage", "wrong", str(error))]
    report["storage"] = seen.as_json()
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
