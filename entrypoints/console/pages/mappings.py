"""What columns mean: proposed at the left beside the file's own cells, chosen at the right, with what each choice would read."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from domain.catalogue.model import Stream
from domain.ingestion.model import Column
from domain.kernel.errors import DomainError, NotFound
from domain.mappings.asking import OFFERED
from domain.mappings.confirming import FIELDS
from domain.mappings.model import SourceMapping
from domain.mappings.ports import MappingStore
from domain.mappings.trying import Tried, tried
from domain.runs.sheets import context_of
from domain.sources.model import Source
from domain.sources.ports import SourceStore
from entrypoints.console.context import PageContext, Pages, Refused
from entrypoints.console.pages.sources import READ, WRITE, show_part
from entrypoints.console.rendering import Portion
from entrypoints.console.request import FormData
from entrypoints.http.exchange import Response

AT_ONCE: Final = 20
"""Columns of a form; what was chosen of others goes with it, unseen."""

pages: Final = Pages("/console", section="Sources", scope=READ)


@pages.get("/sources/<id>/columns")
async def list_mappings(page: PageContext) -> Response:
    """Show a source's header sets."""
    return await show_part(page, "mappings", "sources/mappings.html", 20)


@pages.get("/mappings/<id>")
async def show_mapping(page: PageContext, refused: Refused | None = None) -> Response:
    """Show the columns of one, for review; with what a form chose of them, which confirms nothing yet."""
    mapping = await page.api.get(f"/v1/mappings/{page.ids['id']}")
    stored, context = await _stored(page, mapping["id"])
    asked = page.form if page.sent else page.query
    every, alone = range(len(mapping["headers"])), asked.number("column")
    if alone is not None and alone in every:
        shown = Portion.of(every, alone, 1)
    else:
        alone, shown = None, Portion.of(every, asked.number("to" if "to" in asked else "from"), AT_ONCE)
    current = _current(mapping)
    rows = []
    for at in shown.items:
        read = current.get(at)
        now = (read["field"], _settings_text(read["settings"])) if read else ("", "")
        field, settings = _chosen(page.form, at, now)
        reason = next((one["reason"] for one in mapping["unmapped"] if one["position"] == at), None)
        cells = [row[at] if at < len(row) else "" for row in mapping["samples"]][:3]
        rows.append((at, read, reason, cells, field, settings, _tried(stored, context, at, field, settings)))
    unseen = [edit["position"] for edit in edits_of(mapping, page.form) if edit["position"] not in shown.items]
    return page.render(
        "sources/mapping.html",
        refused=refused,
        mapping=mapping,
        source=await page.api.get(f"/v1/sources/{mapping['source']}"),
        rows=rows,
        shown=shown,
        alone=alone is not None,
        at_once=AT_ONCE,
        unseen=[(f"{name}.{at}", page.form.get(f"{name}.{at}")) for at in unseen for name in ("field", "settings")],
        fields=FIELDS,
        offered=OFFERED,
        editable=page.may(WRITE),
    )


def _current(mapping: Mapping[str, Any]) -> dict[int, Any]:
    return {one["position"]: one for one in mapping["columns"]}


def _chosen(form: FormData, at: int, now: tuple[str, str]) -> tuple[str, str]:
    """Return the field and settings that a form has for a column; those of now where it has none."""
    names = (f"field.{at}", f"settings.{at}")
    field, settings = (form.get(name) if name in form else before for name, before in zip(names, now, strict=True))
    return field, settings


async def _stored(page: PageContext, id: str) -> tuple[SourceMapping, Any]:
    async with page.read() as tx:
        mapping = await tx[MappingStore].get(id)
        source: Source | None = await tx[SourceStore].get(mapping.source) if mapping else None
    if mapping is None or source is None:
        raise NotFound
    return mapping, context_of(source, Stream(mapping.stream))


def _settings_text(settings: Mapping[str, Any]) -> str:
    return "; ".join(f"{name}={value}" for name, value in settings.items() if name != "unit_by")


def _settings_of(text: str) -> dict[str, str]:
    """Read settings written as `unit=cm; location=EAST`."""
    pairs = (part.partition("=") for part in text.replace("\n", ";").split(";"))
    return {name.strip(): value.strip() for name, _, value in pairs if name.strip()}


def _tried(mapping: SourceMapping, context: Any, at: int, field: str, settings: str) -> Sequence[Tried]:
    """Return what the samples would be read as; nothing for a field that there is not."""
    try:
        return tried(mapping, Column(at, mapping.headers[at], field, _settings_of(settings)), context)
    except DomainError:
        return ()


@pages.get("/mappings/<id>/reading")
async def show_reading(page: PageContext) -> Response:
    """Show what one column's samples would be read as, for a choice not sent yet."""
    mapping, context = await _stored(page, page.ids["id"])
    at = page.query.number("position")
    if at is None or at >= len(mapping.headers):
        raise NotFound
    found = _tried(mapping, context, at, *_chosen(page.query, at, ("", "")))
    return page.render("sources/reading.html", tried=found, currency=context.currency)


@pages.post("/mappings/<id>", scope=WRITE, again=show_mapping)
async def confirm_mapping(page: PageContext) -> Response:
    """Confirm it, with what was changed in the form; or only go on to other columns, which confirms nothing."""
    if "to" in page.form:
        return await show_mapping(page)
    mapping = await page.api.get(f"/v1/mappings/{page.ids['id']}")
    edits = edits_of(mapping, page.form)
    await page.api.post(f"/v1/mappings/{mapping['id']}/confirm", {"columns": edits} if edits else {})
    notice = "The columns are confirmed; what is kept is read by them."
    return page.redirect(f"/console/sources/{mapping['source']}", notice)


def edits_of(mapping: Mapping[str, Any], form: FormData) -> list[dict[str, Any]]:
    """Return the changes that a form makes of a mapping's columns."""
    current, edits = _current(mapping), []
    for at in range(len(mapping["headers"])):
        read = current.get(at)
        before = (read["field"], _settings_text(read["settings"])) if read else ("", "")
        field, settings = _chosen(form, at, before)
        if f"field.{at}" in form and (field, settings) != before:
            edit: dict[str, Any] = {"position": at, "field": field or None}
            edits.append(edit | ({"settings": _settings_of(settings)} if field and settings != before[1] else {}))
    return edits
