"""What columns mean: proposed at the left beside the file's own cells, chosen at the right, with what each choice would read."""

from collections.abc import Mapping, Sequence
from typing import Any

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
from entrypoints.console.context import PageContext, Pages
from entrypoints.console.pages.sources import READ, WRITE
from entrypoints.console.rendering import Portion
from entrypoints.console.request import FormData
from entrypoints.http.exchange import Response

AT_ONCE = 20
"""Columns of a form; what was chosen of others goes with it, unseen."""

pages = Pages("/console", section="Sources", scope=READ)


def _choices(mapping: Mapping[str, Any], form: FormData) -> list[tuple[Any, str, str, Any]]:
    """Return of each column how it is read, the field and settings that a form has for it, and the edit that this is, if any."""
    current = {one["position"]: one for one in mapping["columns"]}
    found: list[tuple[Any, str, str, Any]] = []
    for at in range(len(mapping["headers"])):
        read, edit = current.get(at), dict[str, Any]()
        now = (read["field"], _settings_text(read["settings"])) if read else ("", "")
        field, settings = _chosen(form, at, now)
        if f"field.{at}" in form and (field, settings) != now:
            edit = {"position": at, "field": field or None}
            if field and settings != now[1]:
                edit["settings"] = _settings_of(settings)
        found.append((read, field, settings, edit))
    return found


def _chosen(form: FormData, at: int, now: tuple[str, str] = ("", "")) -> list[str]:
    """Return the field and settings that a form has for a column; those of now where it has none."""
    names = (f"field.{at}", f"settings.{at}")
    return [form.get(name) if name in form else before for name, before in zip(names, now, strict=True)]


def _settings_text(settings: Mapping[str, Any]) -> str:
    return "; ".join(f"{name}={value}" for name, value in settings.items() if name != "unit_by")


def _settings_of(text: str) -> dict[str, str]:
    """Read settings written as `unit=cm; location=EAST`."""
    pairs = (part.partition("=") for part in text.replace("\n", ";").split(";"))
    return {name.strip(): value.strip() for name, _, value in pairs if name.strip()}


async def _stored(page: PageContext) -> tuple[SourceMapping, Any]:
    async with page.read() as tx:
        mapping = await tx[MappingStore].get(page.ids["id"])
        source: Source | None = await tx[SourceStore].get(mapping.source) if mapping else None
    if mapping is None or source is None:
        raise NotFound
    return mapping, context_of(source, Stream(mapping.stream))


def _tried(mapping: SourceMapping, context: Any, at: int, field: str, settings: str) -> Sequence[Tried]:
    """Return what the samples would be read as; nothing for a field that there is not."""
    try:
        return tried(mapping, Column(at, mapping.headers[at], field, _settings_of(settings)), context)
    except DomainError:
        return ()


@pages.get("/mappings/<id>")
async def show_mapping(page: PageContext) -> Response:
    """Show the columns of one, for review; with what a form chose of them, which confirms nothing yet."""
    mapping = await page.api.get(f"/v1/mappings/{page.ids['id']}")
    stored, context = await _stored(page)
    values = page.form if page.sent else page.query
    every, column = range(len(mapping["headers"])), values.number("column")
    alone = column is not None and column in every
    start = column if alone else values.number("to" if "to" in values else "from")
    shown = Portion.of(every, start, 1 if alone else AT_ONCE)
    choices = _choices(mapping, page.form)
    reasons = {one["position"]: one["reason"] for one in mapping["unmapped"]}
    rows = []
    for at in shown.items:
        read, field, settings, _ = choices[at]
        cells = [row[at] if at < len(row) else "" for row in mapping["samples"]][:3]
        readings = _tried(stored, context, at, field, settings)
        rows.append((at, read, reasons.get(at), cells, field, settings, readings))
    unseen = [at for at, (*_, edit) in enumerate(choices) if edit and at not in shown.items]
    return page.render(
        "sources/mapping.html",
        mapping=mapping,
        source=await page.api.get(f"/v1/sources/{mapping['source']}"),
        rows=rows,
        shown=shown,
        alone=alone,
        at_once=AT_ONCE,
        unseen=[(f"{name}.{at}", page.form.get(f"{name}.{at}")) for at in unseen for name in ("field", "settings")],
        fields=FIELDS,
        offered=OFFERED,
        editable=page.may(WRITE),
    )


@pages.get("/mappings/<id>/reading")
async def show_reading(page: PageContext) -> Response:
    """Show what one column's samples would be read as, for a choice not sent yet."""
    mapping, context = await _stored(page)
    at = page.query.number("position")
    if at is None or at >= len(mapping.headers):
        raise NotFound
    found = _tried(mapping, context, at, *_chosen(page.query, at))
    return page.render("sources/reading.html", tried=found, currency=context.currency)


@pages.post("/mappings/<id>", scope=WRITE, again=show_mapping)
async def confirm_mapping(page: PageContext) -> Response:
    """Confirm it, with what was changed in the form; or only go on to other columns, which confirms nothing."""
    if "to" in page.form:
        return await show_mapping(page)
    mapping = await page.api.get(f"/v1/mappings/{page.ids['id']}")
    edits = [edit for *_, edit in _choices(mapping, page.form) if edit]
    await page.api.post(f"/v1/mappings/{mapping['id']}/confirm", {"columns": edits} if edits else {})
    notice = "The columns are confirmed; what is kept is read by them."
    return page.redirect(f"/console/sources/{mapping['source']}", notice)
