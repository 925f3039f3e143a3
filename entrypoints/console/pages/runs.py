"""Runs: a source's, one with moving progress, its problems by kind and in the sheet's own cells; a file handed in."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any, Final

import msgspec

from adapters.wire import runs as wire
from domain.ingestion.ports import Place
from domain.kernel.errors import InvalidRequest, NotFound
from domain.kernel.resource import View
from domain.runs.model import SNAPSHOT_LIMIT, Run
from domain.runs.ports import RunStore
from domain.runs.usecases.excerpting import places_of
from domain.sources.model import Source
from domain.sources.ports import SourceStore
from domain.storage.model import upload_key
from entrypoints.console.answers import answered
from entrypoints.console.forms import LONGEST
from entrypoints.console.handing_in import handed_in, name_of, pieces_of
from entrypoints.console.page import Answer, Page
from entrypoints.console.portions import portion, weight_of
from entrypoints.console.progress import followed
from entrypoints.console.refusals import Refused, refused
from entrypoints.console.sheets import sheets_of
from entrypoints.console.source_fields import READ, WRITE, listed
from entrypoints.console.visit import Visit

OPEN: Final = frozenset({"queued", "running", "waiting"})
LARGEST: Final = min(SNAPSHOT_LIMIT, 256 << 20)
"""Bytes of a file that the console takes; larger ones are sent by the API, straight to the store."""
STAGES: Final = ("fetch", "parse", "map", "normalise", "store", "done")
_SHOWN: Final = 25
"""Problems of a kind that are told at once."""
_GROUPS: Final = 40
"""Kinds of problems, each with its field, that are listed at once."""
_COLUMNS: Final = 40
"""Columns of the file that are told at once."""
_PLACES: Final = 8
"""Lines of a sheet that are shown at once, each with its neighbours."""
_CELLS: Final = 200
"""Cells of a line that are shown at once."""
KINDS: Final[Mapping[str, str]] = {
    "missing": "Something is missing",
    "unreadable": "A value could not be read",
    "out_of_range": "A number is out of range",
    "unknown_unit": "The unit is not known",
    "unknown_currency": "The currency is not known",
    "bad_check_digit": "A code's check digit is wrong",
    "duplicate": "Something stands there twice",
    "conflict": "Facts contradict each other",
    "too_long": "A value is too long",
    "unsafe_url": "An address is not taken",
}


async def of_source(visit: Visit) -> Answer:
    """All runs of a source."""
    return await listed(visit, "runs", "sources/runs.html", 25)


async def one(visit: Visit) -> Answer:
    """A run."""
    return await _one(visit)


async def _one(visit: Visit, refusal: Refused | None = None) -> Answer:
    # Problems and columns are many and few of them are shown: those alone are made ready for the template.
    found = msgspec.json.decode(await visit.api.body(f"/v1/runs/{visit.ids['id']}"))
    problems, columns = found.pop("problems"), found.pop("columns", None) or []
    run = answered(found)
    source = await visit.api.get(f"/v1/sources/{run['source']}")
    return visit.render(
        "sources/run.html",
        status=refusal.status if refusal else 200,
        source=source,
        kinds=KINDS,
        **_told(visit, problems, columns),
        problem_count=len(problems),
        refused=refusal,
        **_state(run),
    )


def _state(run: Mapping[str, Any]) -> dict[str, Any]:
    """What moves."""
    stage = run["stage"]
    return {
        "run": run,
        "open": run["status"] in OPEN,
        "stages": STAGES,
        "at": STAGES.index(stage) if stage in STAGES else 0,
    }


def _told(visit: Visit, problems: Sequence[Mapping[str, Any]], columns: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The problems by kind and field, those of one of them word by word, and the columns: each in portions."""
    query, groups = visit.query, _grouped(problems)
    asked = query.get("kind"), query.get("field")
    chosen = next((group for group in groups if group[:2] == asked), groups[0] if groups else None)
    listed = portion(groups, query.number("groups"), _GROUPS)
    told = portion(chosen[2] if chosen else [], query.number("from"), _SHOWN, _weight)
    shown = portion(columns, query.number("columns"), _COLUMNS, _column_weight)
    return {
        "groups": listed,
        "chosen": chosen,
        "told": replace(told, items=answered(list(told.items))),
        "columns": replace(shown, items=answered(list(shown.items))),
        "query": {"kind": chosen[0], "field": chosen[1], "groups": listed.start} if chosen else {},
    }


def _weight(problem: Mapping[str, Any]) -> int:
    return sum(weight_of(str(problem.get(name) or "")) for name in ("detail", "sheet", "column", "external_id")) + 150


def _column_weight(column: Mapping[str, Any]) -> int:
    return sum(weight_of(str(column.get(name) or "")) for name in ("sheet", "header", "field")) + 60


def _grouped(problems: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, list[Mapping[str, Any]]]]:
    """By kind and field, those with the most first."""
    groups: defaultdict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for problem in problems:
        groups[problem["problem"], problem["field"]].append(problem)
    return sorted(((*of, found) for of, found in groups.items()), key=lambda group: -len(group[2]))


async def progress(visit: Visit) -> Answer:
    """The part of the run's page that moves, as it moves."""
    id = visit.ids["id"]
    await visit.api.get(f"/v1/runs/{id}")  # whoever may not read it, follows nothing

    async def look() -> tuple[Mapping[str, Any], bool]:
        state = _state(await _stored(visit, id))
        return state, not state["open"]

    return followed(visit, "sources/run.html", "progress", look)


async def _stored(visit: Visit, id: str) -> dict[str, Any]:
    tenant = visit.principal.tenant
    async with visit.reading() as tx:
        run = await tx[RunStore].get(id)
        if run is None:
            raise NotFound
        shown: dict[str, Any] = answered(wire.RUN.render(run, View(tenant, tx.now)))
        return shown


async def sheet(visit: Visit) -> Answer:
    """Problems of one kind where they stand: the cells of the file around each; or one line of it, whole."""
    run, source = await _with_source(visit)
    query = {name: visit.query.get(name) for name in ("kind", "field")}
    if (line := visit.query.number("line")) is not None:
        return await _line(visit, run, source, (visit.query["sheet"] or None, line), query)
    kind, field = query["kind"], query["field"]
    chosen = [one for one in run.problems if kind in ("", one.problem) and field in ("", one.field)]
    places = places_of(chosen)
    shown = portion(places, visit.query.number("from"), _PLACES)
    org, excerpting = visit.principal.tenant.org, visit.console.excerpting
    tables = await excerpting.around(org, run, source, places, shown.start, len(shown.items))
    return visit.render(
        "sources/sheet.html",
        run=run,
        source=source,
        kind=kind,
        kinds=KINDS,
        count=len(chosen),
        shown=shown,
        query=query,
        tables=sheets_of(tables, chosen),
    )


async def _line(visit: Visit, run: Run, source: Source, place: Place, query: Mapping[str, str]) -> Answer:
    """One line of the file with all of its cells."""
    org, excerpting = visit.principal.tenant.org, visit.console.excerpting
    found = await excerpting.around(org, run, source, [place], 0, 1, beside=0)
    rows = [(table.headers, texts) for table in found for _, texts in table.rows]
    cells = [cell for headers, texts in rows for cell in zip_longest(headers, texts, fillvalue="")]
    shown = portion(cells, visit.query.number("from"), _CELLS, lambda cell: sum(map(weight_of, cell)) + 40)
    return visit.render(
        "sources/line.html", run=run, source=source, sheet=place[0], line=place[1], cells=shown, query=query
    )


async def _with_source(visit: Visit) -> tuple[Run, Source]:
    """The run and its source as they are kept. Raises NotFound."""
    async with visit.reading() as tx:
        run: Run | None = await tx[RunStore].get(visit.ids["id"])
        source: Source | None = await tx[SourceStore].get(run.source) if run else None
    if run is None or source is None:
        raise NotFound
    return run, source


async def send(visit: Visit) -> Answer:
    """A further file of a source that takes files."""
    source, upload = visit.ids["id"], visit.files.get("file")
    if upload is None or upload.size == 0:
        fault = refused(InvalidRequest.of("file", "required", "Choose a file with something in it."), visit.request_id)
        return visit.redirect(f"/console/sources/{source}", fault.fields["file"], tone="bad")
    objects, tenant = visit.dependencies.objects, visit.principal.tenant

    async def store(id: str) -> None:
        await objects.put_stream(upload_key(tenant, id), pieces_of(upload))

    accept = bool(visit.form.get("accept_shrink"))
    try:
        run = await handed_in(visit, source, name_of(upload), upload.size, store, accept_shrink=accept)
    except Refused as refusal:
        if refusal.status == 404:
            raise
        return visit.redirect(f"/console/sources/{source}", refusal.detail, tone="bad")
    return visit.redirect(f"/console/runs/{run}")


PAGES: Final = (
    Page("/console/sources/<id>/runs", of_source, scope=READ, menu="Sources"),
    Page("/console/sources/<id>/file", send, methods=("POST",), scope=WRITE, menu="Sources", most=LARGEST + LONGEST),
    Page("/console/runs/<id>", one, scope=READ, menu="Sources"),
    Page("/console/runs/<id>/progress", progress, scope=READ, menu="Sources"),
    Page("/console/runs/<id>/sheet", sheet, scope=READ, menu="Sources"),
)
