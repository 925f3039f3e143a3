"""State of the service: GET /v1/status and /v1/status/history."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TypeAlias

import aiohttp

from adapters.api_json import platform as wire
from domain.assistant.ports import AssistantUpkeep
from domain.assistant.usecases.turns import AssistantHealth
from domain.changes.model import get_network_tenant
from domain.changes.ports import EventReader
from domain.exports.ports import ExportUpkeep
from domain.jobs.ports import JobDispatcher
from domain.jobs.usecases.ticks import Tick
from domain.kernel.clock import now
from domain.platform.incidents import REQUIRED_CHECKS
from domain.platform.instances import is_idle, is_mostly_failing, is_serving
from domain.platform.model import ComponentState
from domain.platform.ports import Incidents, Instances, PlatformChecks
from domain.platform.usecases import HealthCheck, PlatformService
from domain.secrets.usecases.reencryption import ValueReencrypter
from domain.storage.usecases import StorageSweeper
from domain.webhooks.ports import DeliveryDatabases
from entrypoints.areas.exports import measure_export_state
from entrypoints.operations.operation import Area, Read, ReadContext, Reply
from entrypoints.settings import Settings
from ports.clock import Clock
from ports.maintenance import Maintenance

PlatformReadContext: TypeAlias = ReadContext[PlatformService]
MAX_JOB_WAIT = timedelta(minutes=2)
"""Maximum time that a due job may wait for a worker before ingestion counts as degraded."""


async def read_status(context: PlatformReadContext) -> Reply:
    """Return the measured state of the service and its components."""
    return context.build_resource_reply(wire.STATUS, await context.service.get_status())


async def list_incidents(context: PlatformReadContext) -> Reply:
    """Return a page of the service's incidents, newest first."""
    return context.build_list_reply(wire.INCIDENT, await context.service.list_incidents(context.page_request))


class PublicApiHealthCheck:
    """Health check of the API, by the requests that API processes have answered and by the response of the public URL.

    The first case that applies determines the state:

    - degraded if most requests failed, and at least MIN_FAILURES of them (domain/platform/instances.py);
    - operational if most requests were answered, or the URL responds;
    - unknown if API processes exist but have received no requests;
    - otherwise degraded, and down from the REQUIRED_CHECKS-th consecutive time.
    """

    def __init__(self, url: str, instances: Instances) -> None:
        self._url, self._instances = f"{url}/readyz", instances
        self._failures = 0

    async def __call__(self) -> ComponentState | None:
        """Measure the state of the API and return it; None if it is unknown."""
        api_instances = [instance for instance in await self._instances.list_alive() if instance.role == "api"]
        if is_mostly_failing(api_instances):
            self._failures = 0
            return ComponentState.DEGRADED
        if is_serving(api_instances) or await self._is_reachable():
            self._failures = 0
            return ComponentState.OPERATIONAL
        if is_idle(api_instances):
            self._failures = 0
            return None
        self._failures += 1
        return ComponentState.DOWN if self._failures >= REQUIRED_CHECKS else ComponentState.DEGRADED

    async def _is_reachable(self) -> bool:
        """Return whether the public URL responds with a status below 500."""
        # a proxy that hides /readyz responds with 404, a proxy without a running API with 5xx
        try:
            timeout = aiohttp.ClientTimeout(total=3)
            async with (
                aiohttp.ClientSession(trust_env=False, timeout=timeout) as session,
                session.get(self._url) as response,
            ):
                return response.status < 500
        except (aiohttp.ClientError, OSError, TimeoutError):
            return False


def create_health_checks(
    dispatch: JobDispatcher,
    events: EventReader,
    shards: DeliveryDatabases,
    exports: ExportUpkeep,
    api: HealthCheck,
    assistant: HealthCheck | None,
) -> Mapping[str, HealthCheck]:
    """Return the health check of each component, by name of the component.

    Args:
        dispatch: Finds due jobs.
        events: Reads event logs.
        shards: Counts delivery workers.
        exports: Finds waiting exports.
        api: The health check of the API.
        assistant: The health check of the assistant; None without a language model.
    """

    async def check_ingestion() -> ComponentState:
        due = await dispatch.find_next_due()
        delay = now() - due if due is not None else timedelta()
        return ComponentState.DEGRADED if delay > MAX_JOB_WAIT else ComponentState.OPERATIONAL

    async def check_feed() -> ComponentState:
        await events.query_bounds([get_network_tenant(True)])
        return ComponentState.OPERATIONAL

    async def check_webhooks() -> ComponentState:
        return ComponentState.OPERATIONAL if await shards.count_workers() else ComponentState.DOWN

    async def check_exports() -> ComponentState:
        return await measure_export_state(exports)

    return {
        "api": api,
        "ingestion": check_ingestion,
        "feed": check_feed,
        "webhooks": check_webhooks,
        "exports": check_exports,
    } | ({"assistant": assistant} if assistant is not None else {})


def _create_ticks(
    settings: Settings,
    dispatch: JobDispatcher,
    events: EventReader,
    shards: DeliveryDatabases,
    exports: ExportUpkeep,
    turns: AssistantUpkeep,
    instances: Instances,
    checks: PlatformChecks,
    incidents: Incidents,
    clock: Clock,
    sweeper: StorageSweeper,
    maintenance: Maintenance,
    reencrypter: ValueReencrypter,
) -> Sequence[Tick]:
    measurements = create_health_checks(
        dispatch,
        events,
        shards,
        exports,
        PublicApiHealthCheck(settings.status_url, instances),
        AssistantHealth(turns, clock) if settings.models is not None else None,
    )
    service = PlatformService(checks, incidents, clock, measurements)
    return [
        Tick("health", 60, service.check_components),
        Tick("old checks", 3600, service.purge_old_checks, is_purge=True),
        Tick("partitions", 3600, maintenance.maintain_partitions),
        Tick("sealed values", 5, reencrypter.activate_and_reencrypt),
        Tick("free storage", 60, sweeper.free_due, is_purge=True),
        Tick("orphaned objects", 6 * 3600, sweeper.delete_orphans, is_purge=True),
        Tick("old idempotency keys", 3600, maintenance.purge_stored_responses, is_purge=True),
    ]


AREA = Area(
    "platform",
    "Status",
    "State and incidents of the service.",
    create_service=PlatformService,
    operations=(
        Read(
            id="platform.status",
            path="/v1/status",
            summary="Read the service's status",
            description="Returns the current state of each component and its uptime per day, as measured by the service's own checks.",
            handler=read_status,
            scope=None,
            reply=wire.STATUS.schema,
        ),
        Read(
            id="platform.list_history",
            path="/v1/status/history",
            summary="List the service's incidents",
            description="Returns the periods in which a component was degraded or down, newest first. Three consecutive failed checks open an "
            "incident; the operator can also report one.",
            handler=list_incidents,
            scope=None,
            reply=wire.INCIDENT.list_schema,
            paging="forward",
            no_dataset_reason="Incidents are the same for all organisations.",
        ),
    ),
    create_ticks=_create_ticks,
)
