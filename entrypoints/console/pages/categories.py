"""How a source's own categories are filed: a rule for each path, suggested where it is plain, set by a person."""

import json
from typing import Any, Final

from domain.catalogue import categories
from entrypoints.console.answers import answered
from entrypoints.console.page import Answer, Page
from entrypoints.console.refusals import Refused
from entrypoints.console.source_fields import READ, WRITE
from entrypoints.console.visit import Visit

AT_ONCE: Final = 50
"""Paths of one form."""
_GLUE: Final = " › "


async def of_source(visit: Visit) -> Answer:
    """Its paths and their rules."""
    return await _shown(visit)


def _names() -> dict[str, str]:
    """Every category by what people read and type."""
    return {_GLUE.join(one.path): one.id for one in categories.everything().values()}


async def _shown(visit: Visit, refusal: Refused | None = None) -> Answer:
    source = await visit.api.get(f"/v1/sources/{visit.ids['id']}")
    rules = await visit.api.get(f"/v1/sources/{source['id']}/categories")
    start = (visit.form if refusal else visit.query).number("from") or 0
    found = rules["categories"]
    open_ones = [one for one in found if not one.get("rule") and not one.get("inherited")]
    rows = found[start : start + AT_ONCE]
    return visit.render(
        "sources/categories.html",
        status=refusal.status if refusal else 200,
        source=source,
        rows=[_row(visit, one, refusal is not None) for one in rows],
        start=start,
        at_once=AT_ONCE,
        total=len(found),
        left_out=rules["left_out"],
        unfiled=len(open_ones),
        suggested=sum("suggestion" in one for one in open_ones),
        names=list(_names()),
        refused=refusal,
        editable=visit.may(WRITE),
    )


def _row(visit: Visit, one: dict[str, Any], again: bool) -> dict[str, Any]:
    key = json.dumps(one["path"], ensure_ascii=False)
    told = {name: _GLUE.join(one[name]["path"]) for name in ("rule", "inherited", "suggestion") if name in one}
    chosen = told.get("rule", "")
    if again:
        chosen = dict(zip(visit.form.all("path"), visit.form.all("category"), strict=False)).get(key, chosen)
    shown: dict[str, Any] = {"path": one["path"], "key": key, "products": one["products"], "chosen": chosen}
    row: dict[str, Any] = answered(shown | told)
    return row


async def change(visit: Visit) -> Answer:
    """Set what was changed, or take every suggestion over."""
    id, form, names = visit.ids["id"], visit.form, _names()
    now = (await visit.api.get(f"/v1/sources/{id}/categories"))["categories"]
    by_key = {json.dumps(one["path"], ensure_ascii=False): one for one in now}
    rules = []
    for key, text in zip(form.all("path"), form.all("category"), strict=False):
        one = by_key.get(key)
        if one is None:
            continue
        before = one.get("rule", {}).get("id")
        wanted = names.get(text.strip(), text.strip()) or None
        if form.get("do") == "suggested" and wanted is None and "inherited" not in one:
            wanted = one.get("suggestion", {}).get("id")
        if wanted != before:
            rules.append({"path": one["path"], "category": wanted})
    if not rules:
        return visit.redirect(f"/console/sources/{id}/categories", "Nothing was changed.", tone="info")
    try:
        answer = await visit.api.post(f"/v1/sources/{id}/categories", {"rules": rules})
    except Refused as refusal:
        if refusal.status == 404:
            raise
        return await _shown(visit, refusal)
    said = f"{len(rules)} rules are set; the products are filed by them now."
    run = answer.get("run")
    return visit.redirect(f"/console/runs/{run['id']}" if run else f"/console/sources/{id}/categories", said)


PAGES: Final = (
    Page("/console/sources/<id>/categories", of_source, scope=READ, menu="Sources"),
    Page("/console/sources/<id>/categories", change, methods=("POST",), scope=WRITE, menu="Sources"),
)
