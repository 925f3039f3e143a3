"""`joinery source explain`: explanation of the age of a source's data."""

from collections.abc import Mapping
from datetime import datetime

from domain.catalogue.model import Stream
from domain.kernel.json_values import format_time, to_json_value
from domain.kernel.paging import PageRequest
from domain.platform.ports import Workload
from domain.runs.model import Run, RunFilter
from domain.runs.ports import RunStore
from domain.sources.model import Source
from domain.sources.ports import SourceStore
from entrypoints.cli.store import DEFAULT_OPTIONS, CommandOptions, select_attributes
from entrypoints.errors import CommandError
from ports.unit_of_work import UnitOfWork

MAX_RUNS = 5
"""Maximum number of runs in the output, which lists the latest."""


async def explain_age(id: str, /, *, options: CommandOptions = DEFAULT_OPTIONS) -> int:
    """Explain the age of a source's data: status, freshness, latest runs.

    Args:
        id: ID of the source.
    """
    async with options.open_dependencies() as dependencies:
        tenant = await dependencies[Workload].find_tenant_of_source(id)
        if tenant is None:
            raise CommandError(f"There is no source {id!r}. Check the ID.")
        async with dependencies[UnitOfWork].begin_reading(tenant) as tx:
            source = await tx[SourceStore].get(id)
            if source is None:
                raise CommandError(f"There is no source {id!r}. Check the ID.")
            runs = (await tx[RunStore].page(PageRequest(limit=MAX_RUNS), RunFilter(source.id))).items
            now = tx.now
    run_attributes = ("id", "stream", "trigger", "status", "created_at", "finished_at", "error")
    streams = {stream.value: _build_stream_json(source, stream, now) for stream in Stream}
    result = select_attributes(source, "name", "status", "failures") | {
        "organisation": tenant.org,
        "livemode": tenant.livemode,
        "source": source.id,
        "reason": to_json_value(source.status_reason),
        "streams": streams,
        "runs": [select_attributes(run, *run_attributes) for run in runs],
    }
    text = "\n".join(_format_source(source, tenant.org, runs, streams))
    return options.print_result(
        result, "".join(letter if letter.isprintable() or letter == "\n" else "?" for letter in text)
    )


def _build_stream_json(source: Source, stream: Stream, now: datetime) -> dict[str, object]:
    """Return the freshness and schedule of a stream as JSON."""
    read_at, due = source.stock_at if stream == Stream.STOCK else source.catalogue_at, source.get_next_pull(stream)
    current_freshness = source.compute_freshness(stream, now)
    return {
        "read_at": to_json_value(read_at),
        "state": current_freshness["state"] if current_freshness else None,
        "interval_minutes": source.compute_expected_minutes(stream),
        "next_pull": to_json_value(due),
    }


def _format_source(
    source: Source, org: str, runs: tuple[Run, ...], streams: Mapping[str, Mapping[str, object]]
) -> list[str]:
    """Return lines that describe a source, its streams (as JSON) and its runs."""
    reason = f": {source.status_reason.code}, {source.status_reason.message}" if source.status_reason else ""
    lines = [f"{source.id} ({source.name}) of {org} is {source.status}{reason}"]
    for stream, state_of_stream in streams.items():
        if state_of_stream["read_at"] or state_of_stream["next_pull"] or state_of_stream["interval_minutes"]:
            state, read_at = state_of_stream["state"] or "unknown", state_of_stream["read_at"] or "never"
            lines.append(
                f"{stream:<10} {state}, last read {read_at}, next pull {state_of_stream['next_pull'] or 'not scheduled'}"
            )
    for run in runs:
        error = f"  {run.error.code}: {run.error.message}" if run.error else ""
        lines.append(f"{run.id}  {format_time(run.created_at)}  {run.stream:<9} {run.trigger:<9} {run.status}{error}")
    return lines
