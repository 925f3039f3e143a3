"""The shrink guard: before anything is stored, what a complete run would withdraw is counted."""

from domain.catalogue.model import Stream
from domain.catalogue.ports import CatalogueStore
from domain.runs.model import Run
from domain.runs.ports import RunStore
from domain.runs.shrink import (
    SHRINK_LEAST,
    Offers,
    ShrinkRefused,
    allowance,
    confirms,
    kept_by_catalogue,
    kept_by_stock,
)
from domain.runs.usecases.chunking import ComparedChunk, FeedChunks


async def refuse_shrink(chunks: FeedChunks, run: Run) -> None:
    """Raises ShrinkRefused when the run would withdraw too much and nobody said that it may."""
    if not run.complete or run.accept_shrink:
        return
    async with chunks.uow.read(chunks.tenant) as tx:
        stated = await tx[CatalogueStore].stated_offers(run.source, run.stream)
        before = await tx[RunStore].last_ended(run.source, run.stream)
    if stated <= SHRINK_LEAST:
        return
    allowed = allowance(stated)
    # every offer under a changed key counts at first: an upper bound that reads no changed row
    lost = await _lost(chunks, run.stream, allowed, exactly=run.stream == Stream.STOCK)
    if lost > allowed and run.stream == Stream.CATALOGUE:
        lost = await _lost(chunks, run.stream, stated, exactly=True)
    if lost > allowed and not confirms(before, lost):
        raise ShrinkRefused(stated, lost)


async def _lost(chunks: FeedChunks, stream: Stream, enough: int, *, exactly: bool) -> int:
    """How many offers the run would withdraw; counting stops past `enough`."""
    lost = 0
    for number in range(len(chunks.buckets)):
        compared = await chunks.compare(number)
        if keys := compared.diff.changed | compared.diff.absent:
            async with chunks.uow.read(chunks.tenant) as tx:
                held = await tx[CatalogueStore].stated_of(chunks.source, stream, sorted(keys))
            if held and exactly:
                held -= await _kept(chunks, compared, held)
            lost += len(held)
        if lost > enough:
            break
    return lost


async def _kept(chunks: FeedChunks, compared: ComparedChunk, held: Offers) -> Offers:
    """Which of the offers held under changed keys the feed states anew."""
    changed = compared.diff.changed
    if chunks.feed.stream == Stream.STOCK:
        return kept_by_stock(held, changed, chunks.feed.places)
    kept = kept_by_catalogue(held, (await chunks.states(compared.chunk, changed)).statements)
    if not chunks.feed.names_products:  # variants of an absent product may be listed in other chunks
        kept |= {offer for offer in held if offer[0] not in changed and chunks.feed.has(offer[0])}
    return kept
