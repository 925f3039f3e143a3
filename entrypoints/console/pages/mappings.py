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
from entrypoints.console.asked import Values
from entrypoints.console.page import Answer, Page
from entrypoints.console.portions import Portion, portion
from entrypoints.console.refusals import Refused
from entrypoints.console.source_fields import READ, WRITE, listed
from entrypoints.console.visit import Visit

AT_ONCE: Final = 20
"""Columns of a form; what was chosen of others goes with it, unseen."""
_CELLS: Final = 80
"""Bytes of a page that a cell may fill beside others."""
_WHOLE: Final = 6_000
"""Bytes of a page that a cell may fill where one column is shown alone."""
TIERS: Final = {
    "built_in": "read by its words and values",
    "fuzzy": "resembles known headers",
    "model": "proposed by a model; nothing is read by it yet",
    "learned": "confirmed for another file",
    "person": "said by a person",
}
REASONS: Final = {
    "unknown": "not known",
    "empty": "no header",
    "ambiguous": "another column has the field",
    "ignored": "not to be read",
}


async def of_source(visit: Visit) -> Answer:
    """A source's header sets."""
    return await listed(visit, "mappings", "sources/mappings.html", 20)


async def one(visit: Visit) -> Answer:
    """The review of one."""
    return await _one(visit)


async def _one(visit: Visit, given: Values | None = None, refusal: Refused | None = None) -> Answer:
    mapping = await visit.api.get(f"/v1/mappings/{visit.ids['id']}")
    source = await visit.api.get(f"/v1/sources/{mapping['source']}")
    stored, settings = await _stored(visit, mapping["id"])
    shown, alone = _shown(mapping, given or visit.query)
    rows = [_row(mapping, stored, settings, position, given) for position in shown.items]
    return visit.render(
        "sources/mapping.html",
        status=refusal.status if refusal else 200,
        mapping=mapping,
        source=source,
        rows=rows,
        shown=shown,
        alone=alone,
        at_once=AT_ONCE,
        room=_WHOLE if alone else _CELLS,
        unseen=_unseen(mapping, given, shown.items) if given else [],
        refused=refusal,
        fields=FIELDS,
        offered=OFFERED,
        tiers=TIERS,
        reasons=REASONS,
        editable=visit.may(WRITE),
    )


def _shown(mapping: Mapping[str, Any], asked: Values) -> tuple[Portion[int], bool]:
    """The positions of the columns that are shown, and whether it is one that was asked for alone."""
    every, column = range(len(mapping["headers"])), asked.number("column")
    if column is not None and column in every:
        return Portion([column], column, len(every)), True
    start = asked.number("to") if "to" in asked else asked.number("from")
    return portion(every, start, AT_ONCE), False


def _unseen(mapping: Mapping[str, Any], given: Values, shown: Sequence[int]) -> list[tuple[str, str]]:
    """What was chosen of columns that are not shown, where it differs from what they are read as."""
    rest = Values([(name, value) for name, value in given.pairs if name.rpartition(".")[2] not in set(map(str, shown))])
    edited = {edit["position"] for edit in edits_of(mapping, rest)}
    return [(f"{name}.{at}", given.get(f"{name}.{at}")) for at in sorted(edited) for name in ("field", "settings")]


async def _stored(visit: Visit, id: str) -> tuple[SourceMapping, Any]:
    async with visit.reading() as tx:
        mapping = await tx[MappingStore].get(id)
        source: Source | None = await tx[SourceStore].get(mapping.source) if mapping else None
    if mapping is None or source is None:
        raise NotFound
    return mapping, context_of(source, Stream(mapping.stream))


def _row(
    mapping: Mapping[str, Any], stored: SourceMapping, settings: Any, position: int, given: Values | None
) -> dict[str, Any]:
    """One column: what it is read as now, its cells, and what is chosen in the form."""
    column = next((one for one in mapping["columns"] if one["position"] == position), None)
    left = next((one for one in mapping["unmapped"] if one["position"] == position), None)
    field = column["field"] if column else ""
    words = _words(column["settings"] if column else {})
    chosen = given.get(f"field.{position}") if given and f"field.{position}" in given else field
    told = given.get(f"settings.{position}") if given and f"settings.{position}" in given else words
    return {
        "position": position,
        "header": mapping["headers"][position],
        "cells": [row[position] if position < len(row) else "" for row in mapping["samples"]][:3],
        "column": column,
        "reason": left["reason"] if left else None,
        "field": chosen,
        "settings": told,
        "tried": _tried(stored, settings, position, chosen, told),
    }


def _words(settings: Mapping[str, Any]) -> str:
    return "; ".join(f"{name}={value}" for name, value in settings.items() if name != "unit_by")


def settings_of(text: str) -> dict[str, str]:
    """Settings written as `unit=cm; location=EAST`."""
    pairs = (part.partition("=") for part in text.replace("\n", ";").split(";"))
    return {name.strip(): value.strip() for name, _, value in pairs if name.strip()}


def _tried(mapping: SourceMapping, settings: Any, position: int, field: str, told: str) -> Sequence[Tried]:
    """What the samples would be read as; nothing for a field that there is not."""
    try:
        return tried(mapping, Column(position, mapping.headers[position], field, settings_of(told)), settings)
    except DomainError:
        return ()


async def reading(visit: Visit) -> Answer:
    """What one column's samples would be read as, for a choice not sent yet."""
    mapping, settings = await _stored(visit, visit.ids["id"])
    position = visit.query.number("position")
    if position is None or position >= len(mapping.headers):
        raise NotFound
    found = _tried(
        mapping,
        settings,
        position,
        visit.query.get(f"field.{position}"),
        visit.query.get(f"settings.{position}"),
    )
    return visit.render("sources/reading.html", tried=found, currency=settings.currency)


async def confirm(visit: Visit) -> Answer:
    """Confirm it, with what was changed in the form; or only go on to other columns, which confirms nothing."""
    if "to" in visit.form:
        return await _one(visit, visit.form)
    mapping = await visit.api.get(f"/v1/mappings/{visit.ids['id']}")
    edits = edits_of(mapping, visit.form)
    try:
        await visit.api.post(f"/v1/mappings/{mapping['id']}/confirm", {"columns": edits} if edits else {})
    except Refused as refusal:
        if refusal.status == 404:
            raise
        return await _one(visit, visit.form, refusal)
    return visit.redirect(
        f"/console/sources/{mapping['source']}", "The columns are confirmed; what is kept is read by them."
    )


def edits_of(mapping: Mapping[str, Any], form: Values) -> list[dict[str, Any]]:
    """The changes that a form makes of a mapping's columns."""
    now = {one["position"]: one for one in mapping["columns"]}
    edits = []
    for position in range(len(mapping["headers"])):
        if f"field.{position}" not in form:
            continue
        column, field = now.get(position), form.get(f"field.{position}")
        before = (column["field"], _words(column["settings"])) if column else ("", "")
        told = form.get(f"settings.{position}")
        if (field, told) == before:
            continue
        edit: dict[str, Any] = {"position": position, "field": field or None}
        if field and told != before[1]:
            edit["settings"] = settings_of(told)
        edits.append(edit)
    return edits


PAGES: Final = (
    Page("/console/sources/<id>/columns", of_source, scope=READ, menu="Sources"),
    Page("/console/mappings/<id>", one, scope=READ, menu="Sources"),
    Page("/console/mappings/<id>/reading", reading, scope=READ, menu="Sources"),
    Page("/console/mappings/<id>", confirm, methods=("POST",), scope=WRITE, menu="Sources"),
)
