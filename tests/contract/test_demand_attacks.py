"""Attacks on the statistics of demand."""

import pytest

from adapters.postgres.demand import PostgresDemandUpkeep
from domain.demand.cells import MIN_ORGANISATIONS, CellSummary
from domain.demand.model import NETWORK, DemandDay, SignalCount, SignalType
from domain.kernel.ids import new_id
from tests.contract.test_demand import add_counts
from tests.support.backend import Backend


@pytest.mark.asyncio
async def test_subjects_of_single_organisations_are_not_loaded(backend: Backend) -> None:
    """A hostile retailer sends millions of different searches; the scheduler must not hold them in memory."""
    retailer = await backend.tenant()
    hour = backend.now().replace(minute=0, second=0, microsecond=0)
    word = new_id("req")
    counts = [SignalCount(hour, NETWORK, f"{word} {number}", SignalType.SEARCH_MISS, 1) for number in range(5_000)]
    await add_counts(backend, retailer.org, *counts)
    day = DemandDay(NETWORK, True, hour.date())
    summaries = await PostgresDemandUpkeep(backend.pool).summarise_subjects(day, SignalType.SEARCH_MISS)
    mine = [one for subject, one in summaries.items() if subject.startswith(word)]
    assert not [one for one in mine if one.organisations < MIN_ORGANISATIONS], len(mine)


def test_one_organisation_cannot_suppress_the_statistics_of_others() -> None:
    honest = CellSummary(organisations=20, amount=400, largest=20, second=20)
    hostile = CellSummary(organisations=1, amount=2_000, largest=2_000, second=0)
    assert honest.is_releasable
    assert (honest + hostile).is_releasable
