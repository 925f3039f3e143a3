"""`joinery source why`: explanation of the age of a source's data for operators."""

from collections.abc import Mapping
from datetime import datetime

from domain.catalogue.model import Stream
from domain.kernel.paging import PageRequest
from domain.kernel.plain import instant, plain
from domain.platform.ports import Workload
from domain.runs.model import Run, RunFilter
from domain.runs.ports import RunStore
from domain.sources.model import Source, freshness
from domain.sources.ports import SourceStore
from entrypoints.cli.store import DEFAULT, Store, attributes
from entrypoints.errors import CommandError
from ports.unit_of_work import UnitOfWork

MOST_RUNS = 5
"""Number of latest runs shown."""


async def why(id: str, /, *, store: Store = DEFAULT) -> int:
    """Explain the age of a source's data: status, freshness, latest runs."""
    async with store.open() as parts:
        tenant = await parts[Workload].tenant_of_source(id)
        if tenant is None:
            raise CommandError(f"There is no source {id!r}. Check the ID.")
        async with parts[UnitOfWork].read(tenant) as tx:
            source = await tx[SourceStore].get(id)
            if source is None:
                raise CommandError(f"There is no source {id!r}. Check the ID.")
            runs = (await tx[RunStore].page(PageRequest(limit=MOST_RUNS), RunFilter(source.id))).items
            now = tx.now
    run_attributes = ("id", "stream", "trigger", "status", "created_at", "finished_at", "error")
    streams = {stream.value: _stream_state(source, stream, now) for stream in Stream}
    answer = attributes(source, "name", "status", "failures") | {
        "organisation": tenant.org,
        "livemode": tenant.livemode,
        "source": source.id,
        "reason": plain(source.status_reason),
        "streams": streams,
        "runs": [attributes(run, *run_attributes) for run in runs],
    }
    text = "\n".join(_format_source(source, tenant.org, runs, streams))
    return store.answer(answer, "".join(letter if letter.isprintable() or letter == "\n" else "?" for letter in text))


def _stream_state(source: Source, stream: Stream, now: datetime) -> dict[str, object]:
    read_at, due = source.stock_at if stream == Stream.STOCK else source.catalogue_at, source.due(stream)
    current_freshness = freshness(read_at, source.expected_minutes(stream), now)
    return {
        "read_at": plain(read_at),
        "state": current_freshness["state"] if current_freshness else None,
        "interval_minutes": source.expected_minutes(stream),
        "next_pull": plain(due),
    }


def _format_source(
    source: Source, org: str, runs: tuple[Run, ...], streams: Mapping[str, Mapping[str, object]]
) -> list[str]:
    reason = f": {source.status_reason.code}, {source.status_reason.message}" if source.status_reason else ""
    lines = [f"{source.id} ({source.name}) of {org} is {source.status}{reason}"]
    for stream, state_of_stream in streams.items():
        if state_of_stream["read_at"] or state_of_stream["interval_minutes"]:
            state, read_at = state_of_stream["state"] or "unknown", state_of_stream["read_at"] or "never"
            lines.append(
                f"{stream:<10} {state}, last read {read_at}, next pull {state_of_stream['next_pull'] or 'not scheduled'}"
            )
    for run in runs:
        error = f"  {run.error.code}: {run.error.message}" if run.error else ""
        lines.append(f"{run.id}  {instant(run.created_at)}  {run.stream:<9} {run.trigger:<9} {run.status}{error}")
    return lines
