"""Storage of incidents (domain/platform/ports.py)."""

from dataclasses import replace

import pytest

from adapters.postgres.platform import PostgresIncidents
from domain.kernel.paging import PageRequest
from domain.platform.incidents import OpenedBy, create_incident
from domain.platform.model import ComponentState
from tests.support.backend import Backend
from tests.support.builders import MOMENT

pytestmark = pytest.mark.asyncio


async def test_incidents_are_stored_and_listed(backend: Backend) -> None:
    incidents = PostgresIncidents(backend.pool)
    made = [
        create_incident(
            "feed", ComponentState.DOWN, f"{number} is <down>", "We look.", OpenedBy.OPERATOR, MOMENT, MOMENT
        )
        for number in range(3)
    ]
    for one in made:
        await incidents.save(one)
    assert [one for one in await incidents.list_open() if one in made] == made[::-1]
    over = made[1].with_update(MOMENT, "Nearly.", ComponentState.DEGRADED).with_end(MOMENT, "Done.")
    assert await incidents.save(over, made[1])
    assert not await incidents.save(made[1].with_end(MOMENT, "Too late."), made[1]), "another change was saved first"
    assert await incidents.get(over.id) == over and await incidents.get("inc_nobody") is None
    assert made[1] not in await incidents.list_open()
    first = await incidents.page(PageRequest(limit=2))
    assert first.has_more is True and first.items == (made[2], over)
    rest = await incidents.page(PageRequest(limit=2, key=first.next_key))
    assert rest.items[0] == made[0]
    for one in (made[0], made[2]):
        assert await incidents.save(replace(one, closed_at=MOMENT), one)
