"""GET /v1/status and /v1/status/history."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TypeAlias

import aiohttp

from adapters.wire import platform as wire
from domain.changes.model import network_of
from domain.changes.ports import EventReader
from domain.exports.ports import ExportUpkeep
from domain.jobs.ports import Dispatch
from domain.jobs.usecases.ticks import Tick
from domain.kernel.clock import now
from domain.platform.incidents import IN_A_ROW
from domain.platform.instances import is_idle, is_mostly_failing, is_serving
from domain.platform.model import ComponentState
from domain.platform.ports import Incidents, Instances, PlatformChecks
from domain.platform.usecases import PlatformService, Probe
from domain.secrets.usecases.resealing import Resealing
from domain.storage.usecases import StorageSweeper
from domain.webhooks.ports import DeliveryPlaces
from entrypoints.areas.exports import keeps_up
from entrypoints.operations.operation import Area, Read, ReadContext, Reply
from entrypoints.settings import Settings
from ports.clock import Clock
from ports.maintenance import Maintenance

Reading: TypeAlias = ReadContext[PlatformService]
LATE = timedelta(minutes=2)
"""Maximum time that a due job may wait for a worker before ingestion counts as degraded."""


async def read_status(call: Reading) -> Reply:
    """Return the measured state of the service."""
    return call.one(wire.STATUS, await call.service.status())


async def list_history(call: Reading) -> Reply:
    """Return past incidents."""
    return call.list(wire.INCIDENT, await call.service.history(call.page_request))


class PublicApiProbe:
    """Check of the API as clients see it: at its public URL, and by the requests that its instances report.

    While instances serve clients, a URL that is unreachable from here is ignored. While running instances have no requests,
    the state is unknown: the URL may be reachable for clients. The API is down after IN_A_ROW checks in which the URL was
    unreachable and no instance was running, or clients were not served.
    """

    def __init__(self, url: str, instances: Instances) -> None:
        self._url, self._instances = f"{url}/readyz", instances
        self._failures = 0

    async def __call__(self) -> ComponentState | None:
        """Return the state of the API; None if unknown."""
        apis = [instance for instance in await self._instances.list_alive() if instance.role == "api"]
        if is_mostly_failing(apis):
            self._failures = 0
            return ComponentState.DEGRADED
        if is_serving(apis) or await self._is_reachable():
            self._failures = 0
            return ComponentState.OPERATIONAL
        if is_idle(apis):
            self._failures = 0
            return None
        self._failures += 1
        return ComponentState.DOWN if self._failures >= IN_A_ROW else ComponentState.DEGRADED

    async def _is_reachable(self) -> bool:
        """Return whether the URL leads to an API. A proxy that hides /readyz responds with 404, one without a backend with 5xx."""
        try:
            timeout = aiohttp.ClientTimeout(total=3)
            async with (
                aiohttp.ClientSession(trust_env=False, timeout=timeout) as session,
                session.get(self._url) as answer,
            ):
                return answer.status < 500
        except (aiohttp.ClientError, OSError, TimeoutError):
            return False


def probes(
    dispatch: Dispatch, events: EventReader, places: DeliveryPlaces, exports: ExportUpkeep, api: Probe
) -> Mapping[str, Probe]:
    """Return the probe of each component."""

    async def check_ingestion() -> ComponentState:
        due = await dispatch.next_due()
        delay = now() - due if due is not None else timedelta()
        return ComponentState.DEGRADED if delay > LATE else ComponentState.OPERATIONAL

    async def check_feed() -> ComponentState:
        await events.bounds([network_of(True)])
        return ComponentState.OPERATIONAL

    async def check_webhooks() -> ComponentState:
        return ComponentState.OPERATIONAL if await places.members() else ComponentState.DOWN

    async def check_exports() -> ComponentState:
        return await keeps_up(exports)

    return {
        "api": api,
        "ingestion": check_ingestion,
        "feed": check_feed,
        "webhooks": check_webhooks,
        "exports": check_exports,
    }


def _ticks(
    settings: Settings,
    dispatch: Dispatch,
    events: EventReader,
    places: DeliveryPlaces,
    exports: ExportUpkeep,
    instances: Instances,
    checks: PlatformChecks,
    incidents: Incidents,
    clock: Clock,
    sweeper: StorageSweeper,
    maintenance: Maintenance,
    resealing: Resealing,
) -> Sequence[Tick]:
    component_probes = probes(dispatch, events, places, exports, PublicApiProbe(settings.status_url, instances))
    service = PlatformService(checks, incidents, clock, component_probes)
    return [
        Tick("health", 60, service.tick),
        Tick("old checks", 3600, service.purge_old, purges=True),
        Tick("partitions", 3600, maintenance.partitions),
        Tick("sealed values", 5, resealing.tick),
        Tick("free storage", 60, sweeper.free, purges=True),
        Tick("orphaned objects", 6 * 3600, sweeper.sweep, purges=True),
        Tick("old idempotency keys", 3600, maintenance.purge_answers, purges=True),
    ]


AREA = Area(
    "platform",
    "Status",
    "State and incidents of the service.",
    service=PlatformService,
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
            description="Returns the times in which a component was degraded or down, newest first: found by the service's own checks "
            "(three in a row), or reported by its operator.",
            handler=list_history,
            scope=None,
            reply=wire.INCIDENT.list,
            paging="forward",
            apart="Incidents are the same for all organisations.",
        ),
    ),
    ticks=_ticks,
)
