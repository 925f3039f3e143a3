"""What people do with mappings: look at them and confirm them."""

from dataclasses import dataclass, replace
from typing import Protocol

from domain.audit.model import Act
from domain.audit.ports import AuditLog
from domain.catalogue.model import Stream
from domain.ingestion.model import FeedSettings
from domain.kernel.errors import NotFound
from domain.kernel.paging import Page, PageRequest
from domain.mappings.confirming import confirm
from domain.mappings.model import Confirmation, MappingFilter, MappingStatus, SourceMapping, confirmed, put_back
from domain.mappings.ports import MappingStore
from domain.sources.model import Source
from domain.sources.ports import SourceStore
from ports.unit_of_work import Tx


class Replaying(Protocol):
    """Working a source's kept snapshot through once more, after a mapping was confirmed."""

    def settings(self, source: Source, stream: Stream) -> FeedSettings:
        """How the source's values are read."""
        ...

    async def after_mapping(self, tx: Tx, source: Source, mapping: SourceMapping) -> None:
        """Queue a run over the snapshot that the mapping is about; none where nothing is kept.

        Raises Conflict while a run is open.
        """
        ...


@dataclass(frozen=True, slots=True)
class MappingService:
    """Mappings of one tenant's sources."""

    replaying: Replaying

    async def list_mappings(self, tx: Tx, source: str, page_request: PageRequest) -> Page[SourceMapping]:
        """A source's mappings, newest first. Raises NotFound for an unknown source."""
        if await tx[SourceStore].get(source) is None:
            raise NotFound
        return await tx[MappingStore].page(page_request, MappingFilter(source))

    async def get(self, tx: Tx, id: str) -> SourceMapping:
        """One mapping. Raises NotFound."""
        return _found(await tx[MappingStore].get(id))

    async def confirm(self, tx: Tx, id: str, asked: Confirmation) -> SourceMapping:
        """Confirm the mapping, with changes, and have the source's snapshot read by it.

        One that is confirmed already is answered again where nothing changes, and starts nothing. Raises NotFound;
        InvalidRequest, Unprocessable (confirming.confirm); Conflict while a run is open or the source is not active.
        """
        source = await tx[SourceStore].get(_found(await tx[MappingStore].get(id)).source, lock=True)
        before = _found(await tx[MappingStore].get(id, lock=True))
        if source is None:
            raise NotFound
        after = confirm(before, asked.columns, self.replaying.settings(source, before.stream), tx.now)
        if after == before:
            return before
        source.refuse_unless_runnable()
        await tx[MappingStore].save(after)
        await tx[AuditLog].add(confirmed(before, after))
        await self.replaying.after_mapping(tx, source, after)
        return after

    async def take_back(self, tx: Tx, act: Act) -> None:
        """Have a confirmed mapping be what it was before, and the source's snapshot read by that.

        Raises NotFound; Conflict while a run is open or the source is not active.
        """
        for _, change in act.changes("mapping"):
            source = await tx[SourceStore].get(_found(await tx[MappingStore].get(change.id)).source, lock=True)
            before = _found(await tx[MappingStore].get(change.id, lock=True))
            if source is None:
                raise NotFound
            source.refuse_unless_runnable()
            after = put_back(before, change.before, tx.now)
            if after.confirmed_at is None and after.status == MappingStatus.CONFIRMED:
                after = replace(after, confirmed_at=tx.now)
            await tx[MappingStore].save(after)
            await tx[AuditLog].add(confirmed(before, after))
            await self.replaying.after_mapping(tx, source, after)


def _found(mapping: SourceMapping | None) -> SourceMapping:
    if mapping is None:
        raise NotFound
    return mapping
