"""How the scheduler looks at the components of the service (decisions on status: each does its work, or does not)."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

import aiohttp

from domain.platform.usecases import Probe
from ports.events import EventReader
from ports.jobs import Dispatch
from ports.webhooks import Shards

LATE: Final = timedelta(minutes=2)
"""How long a due job may wait for a worker before ingestion counts as degraded."""


def probes(dispatch: Dispatch, events: EventReader, shards: Shards, api: str) -> Mapping[str, Probe]:
    """What can be looked at in this release; `api` is the address that the API listens on."""

    async def answers() -> str:
        async with aiohttp.ClientSession(trust_env=False) as session, session.get(f"{api}/readyz") as answer:
            return "operational" if answer.status == 200 else "down"

    async def ingests() -> str:
        due = await dispatch.next_due()
        waits = datetime.now(UTC) - due if due is not None else timedelta()
        return "degraded" if waits > LATE else "operational"

    async def feeds() -> str:
        await events.high_watermark()
        return "operational"

    async def delivers() -> str:
        return "operational" if await shards.members() else "down"

    return {"api": answers, "ingestion": ingests, "feed": feeds, "webhooks": delivers}
