"""What a run leaves of the tables that it read: a mapping of each header set, for people to confirm."""

from collections.abc import Sequence

from domain.catalogue.model import Stream
from domain.ingestion.mapping.learned import digest_of
from domain.ingestion.reading import ReadTable
from domain.jobs.ports import JobStore
from domain.mappings.asking import askable, asking
from domain.mappings.model import KEPT
from domain.mappings.ports import MappingStore
from domain.mappings.proposing import brought_up_to_date, new_mapping
from ports.unit_of_work import Tx


async def keep_proposals(
    tx: Tx, source: str, stream: Stream, tables: Sequence[ReadTable], *, ask: bool = False
) -> dict[str, str]:
    """Keep a mapping for each header set of a feed, once; answers their ids by the header set's digest.

    With `ask` a job is left for each that a model may know more about.
    """
    wanted: dict[str, ReadTable] = {}
    for table in tables:
        if table.asked:
            wanted.setdefault(digest_of(table.mapping.headers), table)
    if not wanted:
        return {}
    known = {mapping.digest: mapping for mapping in await tx[MappingStore].of_headers(source, list(wanted))}
    ids = {}
    for digest, table in wanted.items():
        before = known.get(digest)
        mapping = (
            brought_up_to_date(before, table, stream, tx.now) if before else new_mapping(source, stream, table, tx.now)
        )
        if before is None:
            await tx[MappingStore].add(mapping)
        elif mapping != before:
            await tx[MappingStore].save(mapping)
        if ask and askable(mapping):
            await tx[JobStore].add(asking(tx.tenant, mapping.id))
        ids[digest] = mapping.id
    if len(known) < len(wanted):
        await tx[MappingStore].prune(source, KEPT)
    return ids
