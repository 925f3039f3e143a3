"""Runs: a run with live progress, and its problems by kind and in the cells of the file."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

from adapters.wire import runs as wire
from domain.ingestion.reading import Excerpt
from domain.kernel.errors import NotFound
from domain.kernel.problems import Problem
from domain.runs.model import Run
from domain.runs.ports import RunStore
from domain.runs.usecases.inspection import places_of
from domain.sources.model import Source
from domain.sources.ports import SourceStore
from entrypoints.console.context import PageContext, Pages
from entrypoints.console.pages.sources import READ
from entrypoints.console.rendering import Portion
from entrypoints.console.streams import followed
from entrypoints.console.translation import N_
from entrypoints.http.exchange import Response

_PROBLEMS = 25
_GROUPS = 40
_COLUMNS = 40
_PLACES = 8
"""Maximum number of lines of a file on a page, each with its neighbours."""
_CELLS = 200
_WIDEST = 16
"""Maximum number of columns of a file side by side."""

pages = Pages("/console", section=N_("Sources"), scope=READ)


@pages.get("/runs/<id>")
async def show_run(page: PageContext) -> Response:
    """Show a run: its problems by kind and field, the problems of one group, and its columns."""
    run, query = await page.api.get(f"/v1/runs/{page.ids['id']}"), page.query
    groups: defaultdict[tuple[str, str], list[Any]] = defaultdict(list)
    for problem in run["problems"]:
        groups[problem["problem"], problem["field"]].append(problem)
    largest = sorted(groups, key=lambda group: -len(groups[group]))
    named = query.get("kind"), query.get("field")
    chosen = named if named in groups else next(iter(largest), None)
    return page.render(
        "sources/run.html",
        source=await page.api.get(f"/v1/sources/{run['source']}"),
        counts={group: len(found) for group, found in groups.items()},
        groups=Portion.of(largest, query.number("groups"), _GROUPS),
        chosen=chosen,
        problems=Portion.of(groups[chosen] if chosen else [], query.number("from"), _PROBLEMS),
        columns=Portion.of(run.get("columns") or [], query.number("columns"), _COLUMNS),
        **_state_of(run),
    )


def _state_of(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the live part of the page."""
    return {"run": run, "open": run["status"] in ("queued", "running", "waiting")}


@pages.get("/runs/<id>/progress")
async def follow_run(page: PageContext) -> Response:
    """Stream the live part of the run's page."""
    id = page.ids["id"]
    await page.api.get(f"/v1/runs/{id}")  # raises Refused without permission
    return followed(page, "sources/run.html", lambda tx: tx[RunStore].get(id), wire.RUN, _state_of)


@pages.get("/runs/<id>/sheet")
async def show_sheet(page: PageContext) -> Response:
    """Show problems with the surrounding cells of the file, or one complete line."""
    async with page.read() as tx:
        run: Run | None = await tx[RunStore].get(page.ids["id"])
        source: Source | None = await tx[SourceStore].get(run.source) if run else None
    if run is None or source is None:
        raise NotFound
    query, start = {name: page.query.get(name) for name in ("kind", "field")}, page.query.number("from")
    org, excerpting = page.principal.tenant.org, page.console.excerpting
    if (line := page.query.number("line")) is not None:
        sheet = page.query["sheet"] or None
        found = await excerpting.around(org, run, source, [(sheet, line)], 0, 1, beside=0)
        rows = [(table.headers, texts) for table in found for _, texts in table.rows]
        cells = [cell for headers, texts in rows for cell in zip_longest(headers, texts, fillvalue="")]
        shown = Portion.of(cells, start, _CELLS)
        return page.render(
            "sources/line.html", run=run, source=source, sheet=sheet, line=line, cells=shown, query=query
        )
    kind, field = query["kind"], query["field"]
    chosen = [one for one in run.problems if kind in ("", one.problem) and field in ("", one.field)]
    places = Portion.of(places_of(chosen), start, _PLACES)
    tables = await excerpting.around(org, run, source, places_of(chosen), places.start, len(places.items))
    return page.render(
        "sources/sheet.html",
        run=run,
        source=source,
        count=len(chosen),
        shown=places,
        query=query,
        tables=[_with_problems(table, chosen) for table in tables],
    )


def _with_problems(table: Excerpt, problems: Sequence[Problem]) -> dict[str, Any]:
    """Return the rows of a table with the problems of each cell; problems without a column belong to the line."""
    places = {header: number for number, header in reversed(list(enumerate(table.headers)))}
    cells: defaultdict[tuple[int, int], dict[str, None]] = defaultdict(dict)
    lines: defaultdict[int, dict[str, None]] = defaultdict(dict)
    for problem in problems:
        if problem.sheet == table.sheet and problem.line is not None:
            place = places.get(problem.column or "")
            if place is None:
                lines[problem.line][f"{problem.field}: {problem.detail}"] = None
            else:
                cells[problem.line, place][problem.detail] = None
    on_page = {line for line, _ in table.rows}
    shown = _columns({place for line, place in cells if line in on_page}, len(table.headers))
    for (line, place), details in cells.items():
        if place not in shown:
            lines[line][f"{table.headers[place]}: {' '.join(details)}"] = None
    rows = [
        (
            line,
            [(row[place] if place < len(row) else "", " ".join(cells.get((line, place), ()))) for place in shown],
            " ".join(lines.get(line, ())),
        )
        for line, row in table.rows
    ]
    headers = [table.headers[place] for place in shown]
    return {"sheet": table.sheet, "headers": headers, "rows": rows, "left_out": len(table.headers) - len(shown)}


def _columns(wrong: set[int], count: int) -> list[int]:
    """Choose the visible columns: those with problems, then the first ones, then neighbours."""
    beside = {place + step for place in wrong for step in (-1, 1) if 0 <= place + step < count}
    wanted = (*sorted(wrong), *range(min(3 if wrong else 8, count)), *sorted(beside))
    return sorted(list(dict.fromkeys(wanted))[:_WIDEST])
