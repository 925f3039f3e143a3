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
"""How long a due job may wait for a worker before ingestion counts as degraded."""


async def read_status(call: Reading) -> Reply:
    """The service's state as it was measured."""
    return call.one(wire.STATUS, await call.service.status())


async def list_history(call: Reading) -> Reply:
    """What went wrong, and when."""
    return call.list(wire.INCIDENT, await call.service.history(call.page_request))


class PublicApiProbe:
    """Checks the API as clients see it: at its public address, and by the requests that its instances report.

    While instances serve clients, an address that cannot be reached from here is ignored. While running instances have no
    requests, it shows nothing: the address may be reachable for clients. The API is down after IN_A_ROW checks in which the
    address could not be reached and no instance was running, or clients were not served.
    """

    def __init__(self, url: str, instances: Instances) -> None:
        self._url, self._instances = f"{url}/readyz", instances
        self._missed = 0

    async def __call__(self) -> ComponentState | None:
        """Return the state of the API; None if nothing shows it."""
        apis = [one for one in await self._instances.list_alive() if one.role == "api"]
        if is_mostly_failing(apis):
            self._missed = 0
            return ComponentState.DEGRADED
        if is_serving(apis) or await self._is_reachable():
            self._missed = 0
            return ComponentState.OPERATIONAL
        if is_idle(apis):
            self._missed = 0
            return None
        self._missed += 1
        return ComponentState.DOWN if self._missed >= IN_A_ROW else ComponentState.DEGRADED

    async def _is_reachable(self) -> bool:
        """Return whether the address leads to an API. A proxy that hides /readyz answers 404, one without a backend 5xx."""
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

    async def ingests() -> ComponentState:
        due = await dispatch.next_due()
        waits = now() - due if due is not None else timedelta()
        return ComponentState.DEGRADED if waits > LATE else ComponentState.OPERATIONAL

    async def feeds() -> ComponentState:
        await events.bounds([network_of(True)])
        return ComponentState.OPERATIONAL

    async def delivers() -> ComponentState:
        return ComponentState.OPERATIONAL if await places.members() else ComponentState.DOWN

    async def exporting() -> ComponentState:
        return await keeps_up(exports)

    return {"api": api, "ingestion": ingests, "feed": feeds, "webhooks": delivers, "exports": exporting}


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
    looks = probes(dispatch, events, places, exports, PublicApiProbe(settings.status_url, instances))
    service = PlatformService(checks, incidents, clock, looks)
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
    "How the service itself is doing.",
    service=PlatformService,
    operations=(
        Read(
            id="platform.status",
            path="/v1/status",
            summary="Read the service's status",
            description="Each component's state now and its uptime per day, from checks that the service makes of itself.",
            handler=read_status,
            scope=None,
            reply=wire.STATUS.schema,
        ),
        Read(
            id="platform.list_history",
            path="/v1/status/history",
            summary="List the service's incidents",
            description="Times in which a part of the service did not do its work, newest first: found by its own checks (three in a row), "
            "or told by whoever runs it.",
            handler=list_history,
            scope=None,
            reply=wire.INCIDENT.list,
            paging="forward",
            apart="They are the service's, and the same for everybody.",
        ),
    ),
    ticks=_ticks,
)
