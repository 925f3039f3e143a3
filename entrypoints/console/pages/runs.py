"""Pages of a run: its live progress, and its problems by kind and in the cells of the file."""

import asyncio
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any
from urllib.parse import urlencode

import msgspec

from adapters.api_json import runs as wire
from adapters.files.workbooks import XLSX_TYPE
from domain.ingestion.snapshot_results import FeedExcerpt
from domain.kernel.errors import NotFound
from domain.kernel.problems import Problem
from domain.mappings.model import SourceMapping
from domain.mappings.ports import MappingStore
from domain.mappings.problem_groups import ProblemGroup, group_problems
from domain.runs.model import OPEN_STATUSES, ProblemSelection, Run
from domain.runs.ports import RunStore
from domain.runs.usecases.snapshot_views import list_problem_lines
from domain.sources.model import Source
from domain.sources.ports import SourceStore
from entrypoints.console.context import PageContext, Pages
from entrypoints.console.mapping_editor import build_editor_values, find_fix_key
from entrypoints.console.pages.sources import READ_SCOPE, WRITE_SCOPE
from entrypoints.console.rendering import LABELS, ListPortion
from entrypoints.console.request import FormData
from entrypoints.console.security import build_file_headers
from entrypoints.console.streams import stream_progress
from entrypoints.console.translation import LANGUAGES, N_, get_current_locale, gettext
from entrypoints.console.vendor_report import build_vendor_report
from entrypoints.http.exchange import Response

_PROBLEMS_PER_PAGE = 25
_GROUPS_PER_PAGE = 20
_MAX_MAPPINGS = 10
"""Maximum number of column mappings of a run in which columns of problems are searched."""
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
    problems = msgspec.convert(run["problems"], list[Problem])
    groups = group_problems(problems)
    requested = query.get("kind"), query.get("field"), query.get("column") or None
    matching = (group for group in groups if (group.problem, group.field, group.column) == requested)
    selected = next(matching, groups[0] if groups else None)
    rows = [
        (index, problem)
        for index, problem in enumerate(problems)
        if selected and (problem.problem, problem.field, problem.column) == _get_group_key(selected)
    ]
    shown = ListPortion.from_items(rows, query.get_number("from"), _PROBLEMS_PER_PAGE)
    portion = ListPortion.from_items(groups, query.get_number("groups"), _GROUPS_PER_PAGE)
    mappings = await _load_mappings(page, run["mappings"]) if groups else []
    return page.render(
        "sources/run.html",
        source=await page.api.get(f"/v1/sources/{run['source']}"),
        groups=portion,
        group_mappings=[_find_mapping(group, mappings) for group in portion.items],
        selected_mapping=_find_mapping(selected, mappings) if selected else ("", ""),
        default_mapping=mappings[0].id if mappings else "",
        selected_group=selected,
        problems=shown,
        product_ids=await _find_product_ids(page, run["source"], [problem for _, problem in shown.items]),
        columns=ListPortion.from_items(run.get("columns") or [], query.get_number("columns"), _COLUMNS_PER_PAGE),
        is_editable=page.may(WRITE_SCOPE) and run["status"] not in OPEN_STATUSES,
        heading=LABELS["run_headings"].get(f"{run['stream']}_{run['status']}", ""),
        languages=[(language, locale.get_language_name()) for language, locale in LANGUAGES.items()],
        **build_editor_values(FormData([])),
        **_build_live_values(run),
    )


def _find_mapping(group: ProblemGroup, mappings: Sequence[SourceMapping]) -> tuple[str, str]:
    """Return the ID of the mapping with a group's column, and the key of the column in its form; empty texts if there is none."""
    table, _, place = find_fix_key(group, [(None, mapping.headers) for mapping in mappings]).partition(".")
    # The form of a mapping has a single table, so its columns have the table number 0.
    return (mappings[int(table)].id, f"0.{place}") if place else ("", "")


def _get_group_key(group: ProblemGroup) -> tuple[str, str, str | None]:
    """Return the kind, field and column of a group."""
    return group.problem, group.field, group.column


async def _load_mappings(page: PageContext, ids: Sequence[str]) -> list[SourceMapping]:
    """Return the column mappings with these IDs that are still stored, at most _MAX_MAPPINGS."""
    async with page.open_read_transaction() as tx:
        found = [await tx[MappingStore].get(id) for id in ids[:_MAX_MAPPINGS]]
    return [mapping for mapping in found if mapping is not None]


async def _find_product_ids(page: PageContext, source: str, problems: Sequence[Problem]) -> dict[str, str]:
    """Return the IDs of the products of problems' items, by the source's own key of the item."""
    keys = dict.fromkeys(one.external_id for one in problems if one.external_id and len(one.external_id) <= 200)
    if not keys or not page.may("products:read"):
        return {}
    listed = ",".join(re.sub(r"([\\,])", r"\\\1", key) for key in keys)
    found = await page.api.get("/v1/products", source=source, external_id=listed, limit=_PROBLEMS_PER_PAGE)
    return {product["external_id"]: product["id"] for product in found["data"] if product.get("external_id")}


@pages.register_post("/runs/<id>/problems", scope=WRITE_SCOPE, error_view=show_run)
async def change_problems(page: PageContext) -> Response:
    """Mark a problem of a run, or all problems of a group, as ignored or as open."""
    form, id = page.form, page.path_parameters["id"]
    group = {"kind": form.get("kind"), "field": form.get("field"), "column": form.get("column")}
    selection = ProblemSelection(form.get_number("index"), group["kind"], group["field"], form.get("column") or None)
    ignored = form.get("action") != "restore"
    async with page.open_transaction("runs.ignore_problems") as tx:
        await page.get_service("runs").set_problems_ignored(tx, id, selection, ignored=ignored)
    notice = gettext("Ignored. Later runs ignore the same problems.") if ignored else gettext("Restored")
    return page.redirect(f"/console/runs/{id}?{urlencode(group | {'from': form.get('from')})}#group", notice)


@pages.register_get("/runs/<id>/vendor-file")
async def download_vendor_file(page: PageContext) -> Response:
    """Return a spreadsheet for the vendor with the rows of the open problems, or of those in the query's group."""
    run, source = await _load_run(page)
    query = page.query
    chosen = _select_problems(run, query)
    lines = list_problem_lines(chosen)
    tables = await page.console.excerpt_reader.read_excerpts(
        page.principal.tenant.org, run, source, lines, 0, len(lines), context_rows=0
    )
    language = query.get("language") if query.get("language") in LANGUAGES else get_current_locale().language
    content = await asyncio.to_thread(build_vendor_report, tables, chosen, language)
    name = re.sub(r"[^\w.-]+", "-", source.name, flags=re.ASCII).strip("-.")[:60] or "source"
    return Response(200, build_file_headers(XLSX_TYPE, f"{name}-problems.xlsx"), content)


def _select_problems(run: Run, query: FormData) -> list[Problem]:
    """Return the open problems of a run, restricted to the kind, field and column in the query."""
    wanted = query.select("kind", "field", "column")
    return [
        one
        for one in run.problems
        if not one.ignored
        and wanted.get("kind", one.problem) == one.problem
        and wanted.get("field", one.field) == one.field
        and wanted.get("column", one.column) == one.column
    ]


async def _load_run(page: PageContext) -> tuple[Run, Source]:
    """Return the run in the page's path and its source. Raises NotFound."""
    async with page.open_read_transaction() as tx:
        run: Run | None = await tx[RunStore].get(page.path_parameters["id"])
        source: Source | None = await tx[SourceStore].get(run.source) if run else None
    if run is None or source is None:
        raise NotFound
    return run, source


def _build_live_values(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return the template variables of the part of a run's page that is updated live."""
    return {"run": run, "is_open": run["status"] in OPEN_STATUSES}


@pages.register_get("/runs/<id>/progress")
async def follow_run(page: PageContext) -> Response:
    """Stream the part of a run's page that is updated live."""
    id = page.path_parameters["id"]
    await page.api.get(f"/v1/runs/{id}")  # raises OperationRefused without permission
    return stream_progress(page, "sources/run.html", lambda tx: tx[RunStore].get(id), wire.RUN, _build_live_values)


@pages.register_get("/runs/<id>/sheet")
async def show_sheet(page: PageContext) -> Response:
    """Show the cells of the file around the problems of a run, or all cells of the line in the query."""
    run, source = await _load_run(page)
    query, start = {name: page.query.get(name) for name in ("kind", "field", "column")}, page.query.get_number("from")
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
    chosen = _select_problems(run, page.query)
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
