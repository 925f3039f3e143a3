"""How the scheduler looks at the components of the service (docs/conventions.md#service-status)."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

import aiohttp

from domain.platform.model import ComponentState
from domain.platform.usecases import Probe
from ports.events import EventReader
from ports.jobs import Dispatch
from ports.webhooks import Shards

LATE: Final = timedelta(minutes=2)
"""How long a due job may wait for a worker before ingestion counts as degraded."""


def probes(dispatch: Dispatch, events: EventReader, shards: Shards, api: str) -> Mapping[str, Probe]:
    """What can be looked at in this release; `api` is the address that the API listens on."""

    async def answers() -> ComponentState:
        async with aiohttp.ClientSession(trust_env=False) as session, session.get(f"{api}/readyz") as answer:
            return ComponentState.OPERATIONAL if answer.status == 200 else ComponentState.DOWN

    async def ingests() -> ComponentState:
        due = await dispatch.next_due()
        waits = datetime.now(UTC) - due if due is not None else timedelta()
        return ComponentState.DEGRADED if waits > LATE else ComponentState.OPERATIONAL

    async def feeds() -> ComponentState:
        await events.high_watermark()
        return ComponentState.OPERATIONAL

    async def delivers() -> ComponentState:
        return ComponentState.OPERATIONAL if await shards.members() else ComponentState.DOWN

    return {"api": answers, "ingestion": ingests, "feed": feeds, "webhooks": delivers}
