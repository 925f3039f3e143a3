"""What a run tells of the tables that it read: each column, the mappings of their header sets, and how many are unread."""

from dataclasses import replace

from domain.ingestion.reading import ReadTables
from domain.mappings.usecases import keep_proposals
from domain.runs.model import Run
from domain.runs.sheets import columns_of
from ports.unit_of_work import Tx


async def with_tables(tx: Tx, run: Run, tables: ReadTables, *, ask: bool) -> Run:
    """The run with what it read, its header sets' mappings kept; pushed records have no columns.

    With `ask` a model is asked later what the run could not tell; the run neither waits for that nor goes by it.
    """
    ids = await keep_proposals(tx, run.source, run.stream, tables.first, ask=ask)
    stats = {**run.stats}
    if tables.columns:
        stats |= {"columns": tables.columns, "columns_unmapped": tables.unmapped}
    return replace(run, stats=stats, columns=columns_of(tables), mappings=tuple(ids.values()))
