"""Pages of a run: its live progress, and its problems by kind and in the cells of the file."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

from adapters.api_json import runs as wire
from domain.ingestion.snapshot_results import FeedExcerpt
from domain.kernel.errors import NotFound
from domain.kernel.problems import Problem
from domain.runs.model import Run
from domain.runs.ports import RunStore
from domain.runs.usecases.snapshot_views import list_problem_lines
from domain.sources.model import Source
from domain.sources.ports import SourceStore
from entrypoints.console.context import PageContext, Pages
from entrypoints.console.pages.sources import READ_SCOPE
from entrypoints.console.rendering import ListPortion
from entrypoints.console.streams import stream_progress
from entrypoints.console.translation import N_
from entrypoints.http.exchange import Response

_PROBLEMS_PER_PAGE = 25
_GROUPS_PER_PAGE = 40
_COLUMNS_PER_PAGE = 40
_LINES_PER_PAGE = 8
"""Number of lines with problems on a page, each with the neighbouring lines."""
_CELLS_PER_PAGE = 200
_MAX_COLUMNS = 16
"""Maximum number of columns of a file side by side."""

pages = Pages("/console", section=N_("Sources"), scope=READ_SCOPE)


@pages.register_get("/runs/<id>")
async def show_run(page: PageContext) -> Response:
    """Show a run with its problems and the fields of its columns.

    The page counts the problems by kind and field, and lists the problems of the selected kind and field.
    """
    run, query = await page.api.get(f"/v1/runs/{page.path_parameters['id']}"), page.query
    groups: defaultdict[tuple[str, str], list[Any]] = defaultdict(list)
    for problem in run["problems"]:
        groups[problem["problem"], problem["field"]].append(problem)
    largest = sorted(groups, key=lambda group: -len(groups[group]))
    requested = query.get("kind"), query.get("field")
    selected_group = requested if requested in groups else next(iter(largest), None)
    return page.render(
        "sources/run.html",
        source=await page.api.get(f"/v1/sources/{run['source']}"),
        counts={group: len(found) for group, found in groups.items()},
        groups=ListPortion.from_items(largest, query.get_number("groups"), _GROUPS_PER_PAGE),
        selected_group=selected_group,
        problems=ListPortion.from_items(
            groups[selected_group] if selected_group else [], query.get_number("from"), _PROBLEMS_PER_PAGE
        ),
        columns=ListPortion.from_items(run.get("columns") or [], query.get_number("columns"), _COLUMNS_PER_PAGE),
        **_build_live_values(run),
    )


def _build_live_values(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return the template variables of the part of a run's page that is updated live."""
    return {"run": run, "is_open": run["status"] in ("queued", "running", "waiting")}


@pages.register_get("/runs/<id>/progress")
async def follow_run(page: PageContext) -> Response:
    """Stream the part of a run's page that is updated live."""
    id = page.path_parameters["id"]
    await page.api.get(f"/v1/runs/{id}")  # raises OperationRefused without permission
    return stream_progress(page, "sources/run.html", lambda tx: tx[RunStore].get(id), wire.RUN, _build_live_values)


@pages.register_get("/runs/<id>/sheet")
async def show_sheet(page: PageContext) -> Response:
    """Show the cells of the file around the problems of a run, or all cells of the line in the query."""
    async with page.open_read_transaction() as tx:
        run: Run | None = await tx[RunStore].get(page.path_parameters["id"])
        source: Source | None = await tx[SourceStore].get(run.source) if run else None
    if run is None or source is None:
        raise NotFound
    query, start = {name: page.query.get(name) for name in ("kind", "field")}, page.query.get_number("from")
    org, excerpting = page.principal.tenant.org, page.console.excerpt_reader
    if (line := page.query.get_number("line")) is not None:
        sheet = page.query["sheet"] or None
        found = await excerpting.read_excerpts(org, run, source, [(sheet, line)], 0, 1, context_rows=0)
        rows = [(table.headers, texts) for table in found for _, texts in table.rows]
        cells = [cell for headers, texts in rows for cell in zip_longest(headers, texts, fillvalue="")]
        shown = ListPortion.from_items(cells, start, _CELLS_PER_PAGE)
        return page.render(
            "sources/problem_line.html", run=run, source=source, sheet=sheet, line=line, cells=shown, query=query
        )
    kind, field = query["kind"], query["field"]
    chosen = [one for one in run.problems if kind in ("", one.problem) and field in ("", one.field)]
    portion = ListPortion.from_items(list_problem_lines(chosen), start, _LINES_PER_PAGE)
    tables = await excerpting.read_excerpts(
        org, run, source, list_problem_lines(chosen), portion.start, len(portion.items)
    )
    return page.render(
        "sources/sheet.html",
        run=run,
        source=source,
        count=len(chosen),
        portion=portion,
        query=query,
        tables=[_mark_problems(table, chosen) for table in tables],
    )


def _mark_problems(table: FeedExcerpt, problems: Sequence[Problem]) -> dict[str, Any]:
    """Return the template variables of a table: its rows, with the problems of each cell and of each line.

    A problem without a column, or in a column that is not visible, is a problem of its line.
    """
    index_by_header = {header: number for number, header in reversed(list(enumerate(table.headers)))}
    details_by_cell: defaultdict[tuple[int, int], dict[str, None]] = defaultdict(dict)
    details_by_line: defaultdict[int, dict[str, None]] = defaultdict(dict)
    for problem in problems:
        if problem.sheet == table.sheet and problem.line is not None:
            column = index_by_header.get(problem.column or "")
            if column is None:
                details_by_line[problem.line][f"{problem.field}: {problem.detail}"] = None
            else:
                details_by_cell[problem.line, column][problem.detail] = None
    visible_lines = {line for line, _ in table.rows}
    visible_columns = _choose_columns(
        {column for line, column in details_by_cell if line in visible_lines}, len(table.headers)
    )
    for (line, column), details in details_by_cell.items():
        if column not in visible_columns:
            details_by_line[line][f"{table.headers[column]}: {' '.join(details)}"] = None
    rows = [
        (
            line,
            [
                (row[column] if column < len(row) else "", " ".join(details_by_cell.get((line, column), ())))
                for column in visible_columns
            ],
            " ".join(details_by_line.get(line, ())),
        )
        for line, row in table.rows
    ]
    headers = [table.headers[column] for column in visible_columns]
    return {
        "sheet": table.sheet,
        "headers": headers,
        "rows": rows,
        "omitted_column_count": len(table.headers) - len(visible_columns),
    }


def _choose_columns(problem_columns: set[int], count: int) -> list[int]:
    """Return the indexes of the visible columns, at most _MAX_COLUMNS.

    Columns with problems have priority, then the first columns, then the neighbours of columns with problems.

    Args:
        problem_columns: Indexes of the columns with problems.
        count: The number of columns of the table.
    """
    neighbours = {column + offset for column in problem_columns for offset in (-1, 1) if 0 <= column + offset < count}
    candidates = (*sorted(problem_columns), *range(min(3 if problem_columns else 8, count)), *sorted(neighbours))
    return sorted(list(dict.fromkeys(candidates))[:_MAX_COLUMNS])
