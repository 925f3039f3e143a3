"""`joinery doctor`: checks of configuration, connections and stored data, with remedies."""

from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from adapters.arq.queue import ArqQueue
from adapters.postgres.maintenance import PostgresPurgeGuard, PostgresScheduleRepair
from adapters.postgres.migrate import available, read_compatibility
from adapters.postgres.nodes.pool import Pool
from adapters.postgres.privileges import APP, SYSTEM
from domain.ingestion.ports import Connectors
from domain.kernel.clock import CLOCK, MAX_OFFSET
from domain.kernel.errors import DomainError
from domain.kernel.plain import plain
from domain.runs.usecases.scheduling import BatchExpiry
from domain.storage.model import Holding
from domain.storage.ports import StorageUpkeep
from domain.storage.usecases import Orphans, StorageSweeper
from entrypoints.cli.store import DEFAULT, Store
from entrypoints.container import opened
from entrypoints.errors import SettingsError, UpError
from entrypoints.factories import product_version
from entrypoints.settings import Settings
from ports.clock import Clock
from ports.models import Models
from ports.objects import Objects
from ports.unit_of_work import UnitOfWork

_REPAIR_COMMAND = "`joinery doctor --repair-schedule`"


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of one check: `state` is ok, warning or wrong; `detail` is the observation or the remedy."""

    name: str
    state: str
    detail: str


async def doctor(*, sweep: bool = False, repair_schedule: bool = False, store: Store = DEFAULT) -> int:
    """Check the configuration, connections and stored data; exit with 1 if a check fails.

    Args:
        sweep: first delete unused objects, as the scheduler does
        repair_schedule: reset implausibly late due times to now, and confirm that the database's clock is right
    """
    findings = [Finding("joinery", "ok", f"version {product_version()}, schema {available()[-1][0]}")]
    report: dict[str, Any] = {}
    try:
        configured = store.settings()
    except (SettingsError, UpError) as error:
        findings.append(Finding("settings", "wrong", str(error)))
    else:
        findings.append(Finding("settings", "ok", f"API at {configured.base_url}"))
        checks = {
            "database": _database,
            "queue": _queue,
            "objects": _objects,
            "connectors": _connectors,
            "models": _models,
        }
        for name, check in checks.items():
            findings.append(await _check(name, check, configured))
        states = {finding.name: finding.state for finding in findings}
        if states["database"] == "ok":
            findings += await _clock(configured, repair=repair_schedule)
            if states["objects"] == "ok":
                findings += await _check_storage(configured, report, sweep=sweep)
    lines = [f"{finding.state:<8} {finding.name:<12} {finding.detail}" for finding in findings]
    store.answer({"findings": [asdict(finding) for finding in findings], **report}, *lines)
    return 1 if any(finding.state == "wrong" for finding in findings) else 0


async def _check(name: str, check: Callable[[Settings], Awaitable[tuple[str, str]]], configured: Settings) -> Finding:
    try:
        return Finding(name, *await check(configured))
    except (DomainError, SettingsError, OSError) as error:
        return Finding(name, "wrong", str(error))


async def _database(configured: Settings) -> tuple[str, str]:
    schema = await read_compatibility(configured.owner_url)
    if fault := schema.fault():
        return "wrong", fault
    schema_state = f"of a later, compatible release ({schema.unknown()[-1]})" if schema.unknown() else "up to date"
    async with opened(configured) as container, container[Pool].coordinator() as link:
        cursor = await link.cursor.execute(
            "SELECT current_setting('server_version'), bool_or(rolsuper OR rolbypassrls) FROM pg_roles "
            "WHERE rolname = ANY(%s)",
            ([APP, SYSTEM],),
        )
        version, is_privileged = await cursor.fetchone() or ("?", True)
    if is_privileged:
        return (
            "wrong",
            f"Role {APP} or {SYSTEM} bypasses row-level security. Revoke its superuser and BYPASSRLS attributes.",
        )
    return "ok", f"PostgreSQL {version}, schema {schema_state}, row-level security enforced"


async def _queue(configured: Settings) -> tuple[str, str]:
    if not configured.redis_url:
        return "warning", "JOINERY_REDIS_URL is not set. Workers poll the database instead."
    queue = ArqQueue(configured.redis_url)
    try:
        if await queue.healthy():
            return "ok", "Redis is available"
        return "wrong", "Redis is unavailable. No data is lost, but workers start jobs later. Check JOINERY_REDIS_URL."
    finally:
        await queue.close()


async def _objects(configured: Settings) -> tuple[str, str]:
    url = urlsplit(configured.objects_url)
    if url.scheme == "s3":
        return "ok", f"bucket {url.netloc}"
    folder = Path(unquote(url.path))
    folder.mkdir(parents=True, exist_ok=True)  # noqa: ASYNC240  one command, nothing waits
    return "ok", f"folder {folder}"


async def _connectors(configured: Settings) -> tuple[str, str]:
    async with opened(configured) as container:
        names = ", ".join(info.name for info in container[Connectors].infos())
    return ("ok", names) if names else ("wrong", "No connector loads. Run `joinery plugins check`.")


async def _models(configured: Settings) -> tuple[str, str]:
    if configured.models is None:
        return "ok", "no model is configured"
    async with opened(configured) as container:
        container.find(Models)
    provider_settings = configured.provider
    provider = (
        f"{provider_settings.model} at {provider_settings.url} ({provider_settings.api})"
        if provider_settings
        else configured.models
    )
    return "ok", f"for unrecognised columns and match judgement: {provider}"


async def _clock(configured: Settings, *, repair: bool) -> list[Finding]:
    """Compare the clocks and find implausible due times; `repair` resets them and confirms the database's clock."""
    async with opened(configured) as container:
        guard, schedule = container[PostgresPurgeGuard], container[PostgresScheduleRepair]
        before, offset = await guard.state(), CLOCK.offset()
        late_by_kind = await (schedule.repair() if repair else schedule.find())
        if repair:
            await guard.confirm()
    now, last = f"{before.now:%Y-%m-%d %H:%M:%S} UTC", f"{before.last_at:%Y-%m-%d %H:%M} UTC"
    late = ", ".join(f"{number} {name}" for name, number in late_by_kind.items() if number)
    times = f"the last one was at {last}, and the database's clock is at {now}"
    clock = Finding("clock", "ok", f"within {MAX_OFFSET:g} s of the database's clock ({now})")
    scheduled = Finding("schedule", "ok", f"reset to now: {late}" if late else "all due times are plausible")
    purges = Finding("purges", "ok", f"no longer refused: {times}" if before.refused else f"last at {last}")
    if abs(offset) > MAX_OFFSET:
        detail = f"This machine's clock differs by {offset:+.0f} s from the database's clock ({now})"
        clock = Finding("clock", "warning", f"{detail}. Synchronise it by NTP.")
    if late and not repair:
        detail = f"Implausibly late due times: {late}. If the database's clock ({now}) is right, run {_REPAIR_COMMAND}."
        scheduled = Finding("schedule", "wrong", detail)
    if before.refused and not repair:
        detail = f"Refused: {times}. If the clock is right (the service was stopped), run {_REPAIR_COMMAND}."
        purges = Finding("purges", "wrong", detail)
    return [clock, scheduled, purges]


async def _check_storage(configured: Settings, report: dict[str, Any], *, sweep: bool) -> list[Finding]:
    """Return the findings of the object store and add its figures to `report`; with `sweep`, delete unused objects first."""
    findings = []
    try:
        async with opened(configured) as container:
            uow, upkeep, clock = container[UnitOfWork], container[StorageUpkeep], container[Clock]
            sweeper = StorageSweeper(uow, upkeep, container[Objects], clock)
            if sweep and not await container[PostgresPurgeGuard].claim():
                detail = "Nothing was deleted, because purges are refused (see purges)."
                findings.append(Finding("swept", "wrong", detail))
            elif sweep:
                expired, freed = await BatchExpiry(uow, upkeep, clock).expire(), await sweeper.free()
                deleted = _format_amount(await sweeper.sweep())
                detail = f"closed {expired} expired batches, freed {freed} bytes by age, deleted {deleted} orphaned"
                findings.append(Finding("swept", "ok", detail))
            return findings + await _describe(upkeep, sweeper, clock.now(), report)
    except (DomainError, OSError) as error:
        return [Finding("storage", "wrong", str(error))]


async def _describe(
    upkeep: StorageUpkeep, sweeper: StorageSweeper, now: datetime, report: dict[str, Any]
) -> list[Finding]:
    """Read the ledger, and list orphaned objects in the object store (a million objects take a minute)."""
    holdings, deleting = await upkeep.holdings(now), Orphans(*await upkeep.waiting())
    orphans, batches = await sweeper.orphans(), await upkeep.batches()
    report["storage"] = {
        "holdings": plain(holdings),
        "deleting": plain(deleting),
        "orphans": plain(orphans),
        "batches": [
            {"org": tenant.org, "livemode": tenant.livemode, "run": run, "bytes": bytes, "since": plain(since)}
            for tenant, run, bytes, since in batches
        ],
    }
    batch_summary = "no batches are open"
    if batches:
        tenant, run, _, since = batches[0]
        more = "or more " if len(batches) == 100 else ""
        hours = int((now - since).total_seconds() // 3600)
        batch_summary = f"{len(batches)} {more}open, the oldest for {hours} h: {run} of {tenant.org}"
    kinds = "; ".join(f"{_format_amount(holding)} as {holding.kind}" for holding in holdings)
    due = Orphans(sum(one.due_count for one in holdings), sum(one.due_bytes for one in holdings))
    detail = f"would check {_format_amount(due)} due by age, delete {_format_amount(deleting)} freed"
    return [
        Finding("storage", "ok", kinds or "nothing is stored"),
        Finding("batches", "ok", batch_summary),
        Finding("sweep", "ok", f"{detail} and {_format_amount(orphans)} orphaned"),
    ]


def _format_amount(stored: Holding | Orphans) -> str:
    """Format a number of objects and their bytes."""
    power = min(4, max(0, (stored.bytes.bit_length() - 1) // 10))
    size = f"{stored.bytes / 1024**power:.1f}" if power else str(stored.bytes)
    return f"{stored.count} ({size} {('B', 'KiB', 'MiB', 'GiB', 'TiB')[power]})"
