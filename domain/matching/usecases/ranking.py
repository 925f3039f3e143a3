"""After a source's rights have changed: merged products show whom they believe now, and events tell it."""

import asyncio
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from domain.catalogue.laying import Cause, Laying
from domain.catalogue.overlay import Precedence, shown
from domain.catalogue.ports import CatalogueStore
from domain.events.ports import EventLog
from domain.jobs.model import ClaimedJob
from domain.jobs.ports import JobStore
from domain.jobs.usecases.draining import LEASE
from domain.sources.ports import SourceStore
from ports.unit_of_work import Tx, UnitOfWork

AT_ONCE: Final = 200
"""Products whose families are shown anew in one transaction."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """The handler of `matching.rank` jobs; what is done twice changes nothing."""

    uow: UnitOfWork
    lease: timedelta = LEASE

    async def __call__(self, job: ClaimedJob, lost: asyncio.Event) -> None:
        """Carry out one job."""
        context = job.context()
        after: str | None = ""
        while after is not None and not lost.is_set():
            async with self.uow.begin(job.tenant, context) as tx:
                after = await self._some(tx, job, after)

    async def _some(self, tx: Tx, job: ClaimedJob, after: str) -> str | None:
        """Some products behind that id; answers behind which to go on, or None at the end."""
        await tx[CatalogueStore].take_turn(merging=True)
        source = str(job.args["source"])
        ids = await tx[CatalogueStore].tied_of(source, after, AT_ONCE)
        now = await tx[SourceStore].get(source)
        if not ids or now is None:
            await tx[JobStore].finish(job)
            return None
        tied = await tx[CatalogueStore].tied(ids)
        was = Precedence.by(first_party=bool(job.args["first_party"]), licence_basis=str(job.args["licence_basis"]))
        before = shown(replace(tied, words={**tied.words, source: was}))
        laying = Laying(before, tied, Cause(None, tx.now))
        laid = laying.laid()
        if laying.events:
            await tx[CatalogueStore].lay(laid, tx.now)
            await tx[EventLog].append(laying.events)
        await tx[JobStore].hold(job, self.lease)
        return ids[-1]
