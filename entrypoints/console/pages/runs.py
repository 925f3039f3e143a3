"""Runs: a source's, one with moving progress, its problems by kind and in the sheet's own cells; a file handed in."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from adapters.wire import runs as wire
from adapters.wire.resource import View
from domain.ingestion.reading import Excerpt
from domain.kernel.errors import InvalidRequest, NotFound
from domain.runs.model import SNAPSHOT_LIMIT, Run
from domain.runs.usecases.excerpting import Excerpting
from domain.storage.model import upload_key
from entrypoints.console.answers import answered
from entrypoints.console.forms import LONGEST
from entrypoints.console.handing_in import handed_in, name_of, pieces_of
from entrypoints.console.page import Answer, Page
from entrypoints.console.progress import followed
from entrypoints.console.refusals import Refused, refused
from entrypoints.console.source_fields import READ, WRITE, listed
from entrypoints.console.visit import Visit

OPEN: Final = frozenset({"queued", "running", "waiting"})
LARGEST: Final = min(SNAPSHOT_LIMIT, 256 << 20)
"""Bytes of a file that the console takes; larger ones are sent by the API, straight to the store."""
STAGES: Final = ("fetch", "parse", "map", "normalise", "store", "done")
_SHOWN: Final = 25
"""Problems of a kind that are told before one asks for more."""
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
    run = await visit.api.get(f"/v1/runs/{visit.ids['id']}")
    source = await visit.api.get(f"/v1/sources/{run['source']}")
    return visit.render(
        "sources/run.html",
        status=refusal.status if refusal else 200,
        source=source,
        groups=_grouped(run["problems"]),
        kinds=KINDS,
        shown=_SHOWN,
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
        run = await tx.runs.get(id)
        if run is None:
            raise NotFound
        shown: dict[str, Any] = answered(wire.RUN.render(run, View(tenant, tx.now)))
        return shown


async def sheet(visit: Visit) -> Answer:
    """Problems of one kind where they stand: the cells of the file around each."""
    run = await visit.api.get(f"/v1/runs/{visit.ids['id']}")
    source = await visit.api.get(f"/v1/sources/{run['source']}")
    kind, field = visit.query.get("kind"), visit.query.get("field")
    chosen = [one for one in run["problems"] if kind in ("", one["problem"]) and field in ("", one["field"])]
    tables = await _excerpts(visit, run["id"], kind, field)
    return visit.render(
        "sources/sheet.html",
        run=run,
        source=source,
        kind=kind,
        field=field,
        kinds=KINDS,
        count=len(chosen),
        tables=[_with_problems(table, chosen) for table in tables],
    )


async def _excerpts(visit: Visit, id: str, kind: str, field: str) -> Sequence[Excerpt]:
    given = visit.dependencies
    async with visit.reading() as tx:
        run: Run | None = await tx.runs.get(id)
        source = await tx.sources.get(run.source) if run else None
    if run is None or source is None:
        raise NotFound
    chosen = [one for one in run.problems if kind in ("", one.problem) and field in ("", one.field)]
    return await Excerpting(given.objects, given.feed_readers, given.workspaces).around(run, source, chosen)


def _with_problems(table: Excerpt, problems: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The table's rows with, at each cell, what is wrong with it; what names no column of the table stands beside its line."""
    places = {header: number for number, header in reversed(list(enumerate(table.headers)))}
    cells: defaultdict[tuple[int, int], list[str]] = defaultdict(list)
    lines: defaultdict[int, list[str]] = defaultdict(list)
    for problem in problems:
        if problem.get("sheet") != table.sheet or "line" not in problem:
            continue
        place = places.get(problem.get("column", ""))
        if place is None:
            lines[problem["line"]].append(f"{problem['field']}: {problem['detail']}")
        else:
            cells[problem["line"], place].append(problem["detail"])
    told = sorted({place for _, place in cells})
    beside = {place + step for place in told for step in (-1, 0, 1) if 0 <= place + step < len(table.headers)}
    shown = sorted({*range(min(3 if told else 8, len(table.headers))), *beside})[:16]
    rows = [
        {
            "line": line,
            "cells": [(row[place] if place < len(row) else "", cells.get((line, place), [])) for place in shown],
            "told": lines.get(line, []),
        }
        for line, row in table.rows
    ]
    return {"sheet": table.sheet, "headers": [table.headers[place] for place in shown], "rows": rows}


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
