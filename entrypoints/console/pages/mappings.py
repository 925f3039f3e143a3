"""Column mappings: the review of columns with samples, and a preview of each choice."""

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
from entrypoints.console.translation import N_, gettext
from entrypoints.http.exchange import Response

AT_ONCE = 20
"""Maximum number of columns in a form; choices for other columns are hidden fields."""

pages = Pages("/console", section=N_("Sources"), scope=READ)


def _choices(mapping: Mapping[str, Any], form: FormData) -> list[tuple[Any, str, str, Any]]:
    """Return for each column its current mapping, the field and settings of the form, and the edit, if any."""
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
    """Return the field and settings of a column in the form, or the current ones."""
    names = (f"field.{at}", f"settings.{at}")
    return [form.get(name) if name in form else before for name, before in zip(names, now, strict=True)]


def _settings_text(settings: Mapping[str, Any]) -> str:
    return "; ".join(f"{name}={value}" for name, value in settings.items() if name != "unit_by")


def _settings_of(text: str) -> dict[str, str]:
    """Parse settings such as `unit=cm; location=EAST`."""
    pairs = (part.partition("=") for part in text.replace("\n", ";").split(";"))
    return {name.strip(): value.strip() for name, _, value in pairs if name.strip()}


async def _find_mapping(page: PageContext) -> tuple[SourceMapping, Any]:
    async with page.read() as tx:
        mapping = await tx[MappingStore].get(page.ids["id"])
        source: Source | None = await tx[SourceStore].get(mapping.source) if mapping else None
    if mapping is None or source is None:
        raise NotFound
    return mapping, context_of(source, Stream(mapping.stream))


def _preview_samples(mapping: SourceMapping, context: Any, at: int, field: str, settings: str) -> Sequence[Tried]:
    """Return the values of the samples for a field; empty if the field does not exist."""
    try:
        return tried(mapping, Column(at, mapping.headers[at], field, _settings_of(settings)), context)
    except DomainError:
        return ()


@pages.get("/mappings/<id>")
async def show_mapping(page: PageContext) -> Response:
    """Show a mapping for review, with the unconfirmed choices of a form."""
    mapping = await page.api.get(f"/v1/mappings/{page.ids['id']}")
    stored, context = await _find_mapping(page)
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
        readings = _preview_samples(stored, context, at, field, settings)
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
    """Show the values of a column's samples for an unsaved choice."""
    mapping, context = await _find_mapping(page)
    at = page.query.number("position")
    if at is None or at >= len(mapping.headers):
        raise NotFound
    found = _preview_samples(mapping, context, at, *_chosen(page.query, at))
    return page.render("sources/reading.html", tried=found, currency=context.currency)


@pages.post("/mappings/<id>", scope=WRITE, again=show_mapping)
async def confirm_mapping(page: PageContext) -> Response:
    """Confirm the mapping with the changes of the form, or show another page of columns."""
    if "to" in page.form:
        return await show_mapping(page)
    mapping = await page.api.get(f"/v1/mappings/{page.ids['id']}")
    edits = [edit for *_, edit in _choices(mapping, page.form) if edit]
    await page.api.post(f"/v1/mappings/{mapping['id']}/confirm", {"columns": edits} if edits else {})
    notice = gettext("Columns confirmed. The stored file is being re-imported.")
    return page.redirect(f"/console/sources/{mapping['source']}", notice)
