"""Pages of column mappings: the editor of a stored mapping, and the preview of its changes with the stored file."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from domain.catalogue.model import Stream
from domain.ingestion.mapping.learned import compute_header_digest, limit_mappings
from domain.ingestion.ports import Connectors
from domain.kernel.errors import NotFound
from domain.mappings.model import MAX_CONFIRMED_MAPPINGS, SourceMapping
from domain.mappings.ports import MappingStore
from domain.runs.model import Run
from domain.runs.sheets import create_feed_settings
from domain.runs.usecases.service import find_run_of_mapping
from domain.runs.usecases.snapshot_views import FeedPreview, FeedPreviewer
from domain.sources.model import Source
from domain.sources.ports import SourceStore
from entrypoints.console.context import PageContext, Pages
from entrypoints.console.mapping_editor import (
    DEFAULT_SETTINGS,
    NO_PREVIEW,
    EditorTable,
    build_editor_values,
    build_preview_values,
    build_table,
    read_defaults,
)
from entrypoints.console.pages.sources import READ_SCOPE, WRITE_SCOPE
from entrypoints.console.request import FormData
from entrypoints.console.translation import N_, gettext
from entrypoints.http.exchange import Response
from ports.clock import Clock
from ports.objects import ObjectStore

_INPUTS = ("field.", "part.", "set.", "from.", "to.", "ignored.")
"""Beginnings of the names of the inputs of columns."""

pages = Pages("/console", section=N_("Sources"), scope=READ_SCOPE)


async def _load(page: PageContext) -> tuple[SourceMapping, Source, Run | None, tuple[Any, ...]]:
    """Return the mapping in the page's path, its source, the run with its stored file, and all confirmed mappings.

    Raises NotFound if the mapping or its source does not exist.
    """
    async with page.open_read_transaction() as tx:
        mapping = await tx[MappingStore].get(page.path_parameters["id"])
        source: Source | None = await tx[SourceStore].get(mapping.source) if mapping else None
        if mapping is None or source is None:
            raise NotFound
        run = await find_run_of_mapping(tx, mapping)
        known = limit_mappings(await tx[MappingStore].list_confirmed(source.id, MAX_CONFIRMED_MAPPINGS))
    return mapping, source, run, known


@pages.register_get("/mappings/<id>")
async def show_mapping(page: PageContext) -> Response:
    """Show the editor of a column mapping, including unconfirmed choices from the submitted form."""
    return await _render(page, page.form)


@pages.register_post("/mappings/<id>/preview", scope=WRITE_SCOPE)
async def preview_mapping(page: PageContext) -> Response:
    """Show the editor with the columns and defaults in the form, and a preview of the stored file with these."""
    return await _render(page, page.form, with_preview=True)


async def _render(page: PageContext, form: FormData, *, with_preview: bool = False) -> Response:
    """Render the editor of the mapping in the page's path."""
    mapping, source, run, known = await _load(page)
    fix = form.get("fix") if with_preview else ""
    config, start = read_defaults(form, source.config, fix), (form if page.is_post else page.query).get_number("from")
    table = await _build_table(page, mapping, source, config, form, fix, start)
    values: dict[str, Any] = {**NO_PREVIEW, "tables": [table]}
    if with_preview:
        values = await _build_preview_values(page, table, replace(source, config=config), run, known, form)
        if fix and values["earlier_count"] is None and run is not None:
            before = await _build_table(page, mapping, source, source.config, FormData([]), "", start)
            earlier = await _build_preview_values(page, before, source, run, known, form)
            values["earlier_count"] = earlier["preview"]["problem_count"]
    shown_keys = {column.key for column in table.columns}
    hidden = [
        (name, value)
        for name, value in form.pairs
        if name.startswith(_INPUTS) and ".".join(name.split(".")[1:3]) not in shown_keys
    ]
    info = page.dependencies[Connectors].find_connector(source.connector)
    return page.render(
        "sources/mapping.html",
        mapping=mapping,
        source=source,
        defaults=config,
        default_names=[name for name in DEFAULT_SETTINGS if info and name in info.config_schema.get("properties", {})],
        hidden_choices=hidden,
        has_file=run is not None,
        is_editable=page.may(WRITE_SCOPE),
        **build_editor_values(form),
        **values,
    )


async def _build_table(
    page: PageContext,
    mapping: SourceMapping,
    source: Source,
    config: Mapping[str, Any],
    form: FormData,
    fix: str,
    start: int | None,
) -> EditorTable:
    """Return the editor of a mapping with the columns in a form and with settings of the source."""
    settings = create_feed_settings(replace(source, config=config), Stream(mapping.stream))
    first = start if start is not None and start < len(mapping.headers) else 0
    now = page.dependencies[Clock].now()
    # Hundreds of changed columns take too long for the event loop.
    return await asyncio.to_thread(build_table, form, mapping, settings, now, fix=fix, start=first)


async def _build_preview_values(
    page: PageContext, table: EditorTable, source: Source, run: Run | None, known: tuple[Any, ...], form: FormData
) -> dict[str, Any]:
    """Return the template variables of the preview of the stored file, with only the problems of the mapping's tables."""
    if run is None or run.snapshot is None:
        failure = gettext("No file with these columns is stored, so there is no preview.")
        return build_preview_values(FeedPreview(failure=failure), [table], form)
    preview = await page.dependencies[FeedPreviewer].preview_file(
        source,
        page.dependencies[ObjectStore].read(run.snapshot),
        (*table.confirmed, *known),
        Stream(table.mapping.stream),
    )
    sheets = {one.sheet for one in preview.tables if compute_header_digest(one.mapping.headers) == table.mapping.digest}
    if len(preview.tables) > 1:
        problems = tuple(problem for problem in preview.problems if problem.sheet in sheets)
        preview = replace(preview, problems=problems, problem_count=len(problems))
    return build_preview_values(preview, [table], form)


@pages.register_post("/mappings/<id>", scope=WRITE_SCOPE, error_view=show_mapping)
async def confirm_mapping(page: PageContext) -> Response:
    """Confirm a column mapping with the changes in the form, and save changed defaults of its source.

    The paging buttons submit the form with the field `from`. Then the columns from that position are shown, and nothing is
    confirmed.
    """
    if "from" in page.form:
        return await show_mapping(page)
    mapping, source, _, _ = await _load(page)
    config = read_defaults(page.form, source.config)
    table = await _build_table(page, mapping, source, config, page.form, "", None)
    body = {"columns": list(table.edits)} if table.edits else {}
    path = f"/v1/mappings/{mapping.id}/confirm"
    await page.api.post(path, body, dry_run="true")
    if config != source.config:
        await page.api.send_change(
            "PATCH", f"/v1/sources/{source.id}", {"config": config}, page.form.get_number("version")
        )
    await page.api.post(path, body)
    if config != source.config and mapping.confirmed_at is not None and not table.edits:
        await page.api.post(f"/v1/sources/{source.id}/replay", {"stream": mapping.stream})
    notice = gettext("Columns confirmed. The stored file is being re-imported.")
    return page.redirect(f"/console/sources/{source.id}", notice)
