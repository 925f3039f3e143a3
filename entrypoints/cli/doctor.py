"""`joinery doctor`: checks of the configuration, the connections and the stored data."""

from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from adapters.arq.queue import ArqQueue
from adapters.postgres.maintenance import PostgresPurgeGuard, PostgresScheduleRepair
from adapters.postgres.nodes.pool import Pool
from adapters.postgres.privileges import APP, SYSTEM
from adapters.postgres.schema_migrations import load_migrations, read_compatibility
from domain.ingestion.ports import Connectors
from domain.kernel.clock import CLOCK, MAX_OFFSET
from domain.kernel.errors import DomainError
from domain.kernel.json_values import to_json_value
from domain.runs.usecases.scheduling import BatchExpiry
from domain.storage.model import StorageTotal
from domain.storage.ports import StorageUpkeep
from domain.storage.usecases import OrphanTotal, StorageSweeper
from entrypoints.cli.store import DEFAULT_OPTIONS, CommandOptions
from entrypoints.container import open_dependencies
from entrypoints.errors import SettingsError, UpError
from entrypoints.settings import Settings, get_release_version
from ports.clock import Clock
from ports.language_models import LanguageModels
from ports.objects import ObjectStore
from ports.unit_of_work import UnitOfWork

_REPAIR_COMMAND = "`joinery doctor --repair-schedule`"


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of one check.

    Attributes:
        name: The name of the check.
        state: `ok`, `warning` or `wrong` (an error), as in the output of the command.
        detail: The observation, and what to do about an error.
    """

    name: str
    state: str
    detail: str


async def doctor(
    *, sweep: bool = False, repair_schedule: bool = False, options: CommandOptions = DEFAULT_OPTIONS
) -> int:
    """Check the configuration, connections and stored data; exit with 1 if a check fails.

    Args:
        sweep: First delete unused objects, as the scheduler does regularly.
        repair_schedule: Reset implausibly late due times to now, and resume purges. Use it only if the database's clock is
            right.
    """
    findings = [Finding("joinery", "ok", f"version {get_release_version()}, schema {load_migrations()[-1][0]}")]
    report: dict[str, Any] = {}
    try:
        configured = options.read_settings()
    except (SettingsError, UpError) as error:
        findings.append(Finding("settings", "wrong", str(error)))
    else:
        findings.append(Finding("settings", "ok", f"API at {configured.base_url}"))
        checks = {
            "database": _check_database,
            "queue": _check_queue,
            "objects": _check_objects,
            "connectors": _check_connectors,
            "models": _check_models,
        }
        for name, check in checks.items():
            findings.append(await _run_check(name, check, configured))
        states = {finding.name: finding.state for finding in findings}
        if states["database"] == "ok":
            findings += await _check_clock(configured, repair=repair_schedule)
            if states["objects"] == "ok":
                findings += await _check_storage(configured, report, sweep=sweep)
    lines = [f"{finding.state:<8} {finding.name:<12} {finding.detail}" for finding in findings]
    options.print_result({"findings": [asdict(finding) for finding in findings], **report}, *lines)
    return 1 if any(finding.state == "wrong" for finding in findings) else 0


async def _run_check(
    name: str, check: Callable[[Settings], Awaitable[tuple[str, str]]], configured: Settings
) -> Finding:
    """Run a check, which returns state and detail; an expected exception becomes a finding with the state `wrong`."""
    try:
        return Finding(name, *await check(configured))
    except (DomainError, SettingsError, OSError) as error:
        return Finding(name, "wrong", str(error))


async def _check_database(configured: Settings) -> tuple[str, str]:
    """Check the schema and the roles of the database; return state and detail."""
    schema = await read_compatibility(configured.owner_url)
    if fault := schema.find_incompatibility():
        return "wrong", fault
    schema_state = (
        f"of a later, compatible release ({schema.list_unknown_migrations()[-1]})"
        if schema.list_unknown_migrations()
        else "up to date"
    )
    async with open_dependencies(configured) as dependencies, dependencies[Pool].connect_to_coordinator() as link:
        cursor = await link.cursor.execute(
            "SELECT current_setting('server_version'), bool_or(rolsuper OR rolbypassrls) FROM pg_roles "
            "WHERE rolname = ANY(%s)",
            ([APP, SYSTEM],),
        )
        version, is_privileged = await cursor.fetchone() or ("?", True)
    if is_privileged:
        return (
            "wrong",
            f"Role {APP} or {SYSTEM} bypasses row-level security. Remove its superuser and BYPASSRLS attributes.",
        )
    return "ok", f"PostgreSQL {version}, schema {schema_state}, row-level security enforced"


async def _check_queue(configured: Settings) -> tuple[str, str]:
    """Check whether Redis is available; return state and detail."""
    if not configured.redis_url:
        return "warning", "JOINERY_REDIS_URL is not set. Workers poll the database instead."
    queue = ArqQueue(configured.redis_url)
    try:
        if await queue.is_healthy():
            return "ok", "Redis is available"
        return "wrong", "Redis is unavailable. No data is lost, but workers start jobs later. Check JOINERY_REDIS_URL."
    finally:
        await queue.close()


async def _check_objects(configured: Settings) -> tuple[str, str]:
    """Check or create the folder of the object store; return state and detail. A bucket is not checked."""
    url = urlsplit(configured.objects_url)
    if url.scheme == "s3":
        return "ok", f"bucket {url.netloc}"
    folder = Path(unquote(url.path))
    folder.mkdir(parents=True, exist_ok=True)  # noqa: ASYNC240  one command, nothing waits
    return "ok", f"folder {folder}"


async def _check_connectors(configured: Settings) -> tuple[str, str]:
    """Check that connectors load; return state and detail."""
    async with open_dependencies(configured) as dependencies:
        names = ", ".join(info.name for info in dependencies[Connectors].list_connectors())
    return ("ok", names) if names else ("wrong", "No connector loads. Run `joinery plugins check`.")


async def _check_models(configured: Settings) -> tuple[str, str]:
    """Check the settings of language models; return state and detail."""
    if configured.models is None:
        return "ok", "no language model is configured"
    async with open_dependencies(configured) as dependencies:
        dependencies.find_optional(LanguageModels)
    provider_settings = configured.provider
    if provider_settings is None:
        return "ok", configured.models
    routes = "".join(f", {model} for {task}" for task, model in provider_settings.routes.items())
    server = f"{provider_settings.url} ({provider_settings.api})"
    return "ok", f"{provider_settings.model}{routes} at {server}; `joinery models check` sends requests"


async def _check_clock(configured: Settings, *, repair: bool) -> list[Finding]:
    """Check the clocks, the due times of jobs, and whether purges run.

    Args:
        configured: The settings.
        repair: Whether to reset implausibly late due times to now, and to resume purges.
    """
    async with open_dependencies(configured) as dependencies:
        guard, schedule = dependencies[PostgresPurgeGuard], dependencies[PostgresScheduleRepair]
        purge_state, offset = await guard.read_state(), CLOCK.compute_offset()
        late_by_kind = await (schedule.reset_implausible() if repair else schedule.count_implausible())
        if repair:
            await guard.confirm_clock()
    now, last_purge = f"{purge_state.now:%Y-%m-%d %H:%M:%S} UTC", f"{purge_state.last_at:%Y-%m-%d %H:%M} UTC"
    late_times = ", ".join(f"{number} {name}" for name, number in late_by_kind.items() if number)
    explanation = f"the last purge was at {last_purge}, and the database's clock is at {now}"
    clock = Finding("clock", "ok", f"within {MAX_OFFSET:g} s of the database's clock ({now})")
    scheduled = Finding(
        "schedule", "ok", f"reset to now: {late_times}" if late_times else "all due times are plausible"
    )
    purges = Finding("purges", "ok", f"resumed: {explanation}" if purge_state.is_refused else f"last at {last_purge}")
    if abs(offset) > MAX_OFFSET:
        detail = f"This machine's clock differs by {offset:+.0f} s from the database's clock ({now})"
        clock = Finding("clock", "warning", f"{detail}. Synchronise the machine's clock by NTP.")
    if late_times and not repair:
        detail = (
            f"These due times are implausibly late: {late_times}. If the database's clock ({now}) is right, run "
            f"{_REPAIR_COMMAND} to reset them to now."
        )
        scheduled = Finding("schedule", "wrong", detail)
    if purge_state.is_refused and not repair:
        detail = (
            f"Purges are refused: {explanation}. If the database's clock is wrong, correct it. If the clock is right, for "
            f"example because the service was stopped for more than a day, run {_REPAIR_COMMAND}."
        )
        purges = Finding("purges", "wrong", detail)
    return [clock, scheduled, purges]


async def _check_storage(configured: Settings, report: dict[str, Any], *, sweep: bool) -> list[Finding]:
    """Check the object store, and add the amounts of stored data to `report`; with `sweep`, first delete unused objects."""
    findings = []
    try:
        async with open_dependencies(configured) as dependencies:
            uow, upkeep, clock = dependencies[UnitOfWork], dependencies[StorageUpkeep], dependencies[Clock]
            sweeper = StorageSweeper(uow, upkeep, dependencies[ObjectStore], clock)
            if sweep and not await dependencies[PostgresPurgeGuard].begin_purge():
                detail = "Nothing was deleted, because purges are refused (see the check `purges`)."
                findings.append(Finding("swept", "wrong", detail))
            elif sweep:
                expired, freed = await BatchExpiry(uow, upkeep, clock).expire_batches(), await sweeper.free_due()
                deleted = _format_amount(await sweeper.delete_orphans(), "orphaned")
                detail = (
                    f"closed {expired} expired batches, freed {freed} bytes past their retention, deleted {deleted}"
                )
                findings.append(Finding("swept", "ok", detail))
            return findings + await _inspect_storage(upkeep, sweeper, clock.now(), report)
    except (DomainError, OSError) as error:
        return [Finding("storage", "wrong", str(error))]


async def _inspect_storage(
    upkeep: StorageUpkeep, sweeper: StorageSweeper, now: datetime, report: dict[str, Any]
) -> list[Finding]:
    """Return findings about the stored, freed and orphaned objects, and add the amounts to `report`.

    The findings also state how many objects are due for a deletion check because of their age.
    """
    # listing a million objects takes a minute
    holdings, deleting = await upkeep.sum_by_kind(now), OrphanTotal(*await upkeep.sum_freed())
    orphans, batches = await sweeper.sum_orphans(), await upkeep.list_open_batches()
    report["storage"] = {
        "holdings": to_json_value(holdings),
        "deleting": to_json_value(deleting),
        "orphans": to_json_value(orphans),
        "batches": [
            {"org": tenant.org, "livemode": tenant.livemode, "run": run, "bytes": bytes, "since": to_json_value(since)}
            for tenant, run, bytes, since in batches
        ],
    }
    batch_summary = "no batches are open"
    if batches:
        tenant, run, _, since = batches[0]
        more = "or more " if len(batches) == 100 else ""
        hours = int((now - since).total_seconds() // 3600)
        batch_summary = f"{len(batches)} {more}open, the oldest for {hours} h: {run} of {tenant.org}"
    amounts = "; ".join(f"{_format_amount(holding)} as {holding.kind}" for holding in holdings)
    due = OrphanTotal(sum(one.due_count for one in holdings), sum(one.due_bytes for one in holdings))
    detail = (
        f"would check whether {_format_amount(due)} past their retention are still needed, "
        f"delete {_format_amount(deleting, 'freed')} and {_format_amount(orphans, 'orphaned')}"
    )
    return [
        Finding("storage", "ok", amounts or "nothing is stored"),
        Finding("batches", "ok", batch_summary),
        Finding("sweep", "ok", detail),
    ]


def _format_amount(stored: StorageTotal | OrphanTotal, adjective: str = "") -> str:
    """Format the number of objects and their size, for example `3 freed objects (1.5 MiB)`."""
    power = min(4, max(0, (stored.bytes.bit_length() - 1) // 10))
    size = f"{stored.bytes / 1024**power:.1f}" if power else str(stored.bytes)
    noun = f"{adjective} objects".lstrip()
    return f"{stored.count} {noun} ({size} {('B', 'KiB', 'MiB', 'GiB', 'TiB')[power]})"
