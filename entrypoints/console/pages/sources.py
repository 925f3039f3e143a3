"""Sources: the list, and a source with its health, settings, credentials, emails and category rules."""

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from domain.catalogue import categories
from domain.ingestion.ports import Connectors
from domain.runs.ports import RunStore
from entrypoints.console.charts import DAYS, run_strips
from entrypoints.console.context import PageContext, Pages, Refused
from entrypoints.console.rendering import number
from entrypoints.console.request import FormData
from entrypoints.console.source_forms import (
    credentials_given,
    schedule_given,
    settings_fields,
    settings_given,
    sign_in_methods,
    with_senders,
)
from entrypoints.console.translation import N_, gettext, ngettext
from entrypoints.http.exchange import Response
from ports.clock import Clock

READ = "sources:read"
WRITE = "sources:write"
_API = "/v1/sources/{id}"
_PATHS = 50
"""Maximum number of category paths in a form."""
_SEPARATOR = " › "

pages = Pages("/console/sources", section=N_("Sources"), scope=READ)
for _rule, _template, _list, _limit in (
    ("/<id>/runs", "sources/runs.html", "runs", 25),
    ("/<id>/columns", "sources/mappings.html", "mappings", 20),
    ("/<id>/mail", "sources/mail.html", "inbound-messages", 8),
):
    pages.show(_rule, _template, limit=_limit, read={"source": _API, "found": f"{_API}/{_list}"})


def _path(page: PageContext) -> str:
    return _API.format_map(page.ids)


async def source_names(page: PageContext) -> dict[str, str]:
    """Return the names of the organisation's sources by ID; empty for a role without access to sources."""
    listed = (await page.api.get("/v1/sources", limit=100))["data"] if page.may(READ) else ()
    return {source["id"]: source["name"] for source in listed}


@pages.get(title=N_("Sources"))
async def list_sources(page: PageContext) -> Response:
    """Show the list of sources."""
    found = await page.api.get("/v1/sources", limit=25, starting_after=page.cursor)
    sources, since = found["data"], page.dependencies[Clock].now() - timedelta(days=DAYS)
    async with page.read() as tx:
        runs = await tx[RunStore].newest([source["id"] for source in sources], since) if sources else ()
    return page.render(
        "sources/list.html",
        found=found,
        strips=await run_strips(page, sources),
        last={run.source: run for run in runs},
    )


@pages.get("/<id>")
async def show_source(page: PageContext) -> Response:
    """Show a source with its health and actions."""
    return await _show(page)


async def _show(page: PageContext, tested: Any = None) -> Response:
    source = await page.api.get(_path(page))
    return page.render(
        "sources/source.html",
        source=source,
        runs=(await page.api.get(f"{_path(page)}/runs", limit=5))["data"],
        days=(await run_strips(page, [source]))[source["id"]],
        tested=tested,
    )


@pages.post("/<id>/<any(pause, resume, run, replay, test):what>", scope=WRITE, again=show_source)
async def act(page: PageContext) -> Response:
    """Pause, resume, import, re-import or test a source."""
    what, form, path = page.ids["what"], page.form, _path(page)
    if what == "test":
        return await _show(page, await page.api.post(f"{path}/test"))
    if what in ("pause", "resume"):
        status = "paused" if what == "pause" else "active"
        await page.api.change("PATCH", path, {"status": status}, form.number("version"))
        notice = gettext("Source paused") if what == "pause" else gettext("Source resumed")
        return page.redirect(f"/console/sources/{page.ids['id']}", notice)
    body = {"stream": form.get("stream", "catalogue")} | ({"accept_shrink": True} if form.get("accept_shrink") else {})
    run = await page.api.post(f"{path}/{'runs' if what == 'run' else 'replay'}", body)
    return page.redirect(f"/console/runs/{run['id']}")


@pages.get("/<id>/settings", scope=WRITE)
async def show_settings(page: PageContext) -> Response:
    """Show the forms for settings and credentials; a refused form keeps its values, except secrets."""
    part = page.request.path.rpartition("/")[2] if page.refused else ""
    source = await page.api.get(_path(page))
    info = page.dependencies[Connectors].info(source["connector"])
    given = page.form if part == "settings" else None
    config = source["config"] if given is None or info is None else settings_given(info.config_schema, given, {})
    senders = source["config"].get("inbound", {}).get("senders", [])
    return page.render(
        "sources/settings.html",
        source=source,
        fields=settings_fields(info.config_schema, config) if info else [],
        methods=sign_in_methods(info.credentials_schema) if info else [],
        senders="\n".join(senders) if given is None else given["senders"],
        given=given or FormData([]),
        part=part,
        pulled=source["kind"] in ("url", "api"),
        stock=info is not None and "stock" in info.streams,
    )


@pages.post("/<id>/settings", scope=WRITE, again=show_settings)
async def save_settings(page: PageContext) -> Response:
    """Change the source if its version is that of the form."""
    source, form = await page.api.get(_path(page)), page.form
    info = page.dependencies[Connectors].info(source["connector"])
    changes: dict[str, Any] = {"name": form.get("name"), "licence_basis": form.get("licence_basis", "unknown")}
    if info is not None:
        config = settings_given(info.config_schema, form, source["config"])
        changes["config"] = with_senders(config, form) if "senders" in form else config
    if "interval_minutes" in form:
        changes["schedule"] = schedule_given(form)
    await page.api.change("PATCH", _path(page), changes, form.number("version"))
    return page.redirect(f"/console/sources/{source['id']}", gettext("Saved"))


@pages.post("/<id>/credentials", scope=WRITE, again=show_settings)
async def save_credentials(page: PageContext) -> Response:
    """Store or delete the credentials of the source."""
    path, place = _path(page), f"/console/sources/{page.ids['id']}"
    if page.form.get("forget"):
        await page.api.change("DELETE", f"{path}/credentials")
        return page.redirect(f"{place}/settings", gettext("Credentials deleted"))
    source = await page.api.get(path)
    info = page.dependencies[Connectors].info(source["connector"])
    credentials = credentials_given(sign_in_methods(info.credentials_schema if info else None), page.form)
    await page.api.change("PUT", f"{path}/credentials", {"credentials": credentials})
    return page.redirect(place, gettext("Credentials saved"))


@pages.post("/<id>/mail/rotate", scope=WRITE)
async def rotate_address(page: PageContext) -> Response:
    """Replace the email address of the source."""
    place = f"/console/sources/{page.ids['id']}/mail"
    try:
        await page.api.post(f"{_path(page)}/inbound-address/rotate")
    except Refused as refused:
        return page.redirect(place, refused.detail, tone="bad")
    return page.redirect(place, gettext("Email address replaced. The previous address no longer works."))


@pages.get("/<id>/categories")
async def list_categories(page: PageContext) -> Response:
    """Show the category paths of the source and their rules."""
    rules = await page.api.get(f"{_path(page)}/categories")
    start = (page.form if page.refused else page.query).number("from") or 0
    found, typed = rules["categories"], dict(zip(page.form.all("path"), page.form.all("category"), strict=False))
    open_ones = [one for one in found if "rule" not in one and "inherited" not in one]
    rows = []
    for one in found[start : start + _PATHS]:
        named = {
            name: _SEPARATOR.join(one[name]["path"]) for name in ("rule", "inherited", "suggestion") if name in one
        }
        key = _key(one)
        rows.append(one | named | {"key": key, "chosen": typed.get(key, named.get("rule", ""))})
    return page.render(
        "sources/categories.html",
        source=await page.api.get(_path(page)),
        rows=rows,
        start=start,
        at_once=_PATHS,
        total=len(found),
        left_out=rules["left_out"],
        unfiled=len(open_ones),
        suggested=sum("suggestion" in one for one in open_ones),
        names=list(_category_ids()),
    )


def _key(one: Mapping[str, Any]) -> str:
    return json.dumps(one["path"], ensure_ascii=False)


def _category_ids() -> dict[str, str]:
    """Return the IDs of all categories by their path as text."""
    return {_SEPARATOR.join(one.path): one.id for one in categories.everything().values()}


@pages.post("/<id>/categories", scope=WRITE, again=list_categories)
async def change_categories(page: PageContext) -> Response:
    """Set the changed rules, or apply all suggestions."""
    form, ids, place = page.form, _category_ids(), f"/console/sources/{page.ids['id']}/categories"
    api, rules = f"{_path(page)}/categories", []
    by_key = {_key(one): one for one in (await page.api.get(api))["categories"]}
    for key, text in zip(form.all("path"), form.all("category"), strict=False):
        if (one := by_key.get(key)) is None:
            continue
        wanted = ids.get(text.strip(), text.strip()) or None
        if form.get("do") == "suggested" and wanted is None and "inherited" not in one:
            wanted = one.get("suggestion", {}).get("id")
        if wanted != one.get("rule", {}).get("id"):
            rules.append({"path": one["path"], "category": wanted})
    if not rules:
        return page.redirect(place, gettext("No changes to save"), tone="info")
    run = (await page.api.post(api, {"rules": rules})).get("run")
    notice = ngettext(
        "%(count)s rule saved. Products are being updated.",
        "%(count)s rules saved. Products are being updated.",
        len(rules),
        count=number(len(rules)),
    )
    return page.redirect(f"/console/runs/{run['id']}" if run else place, notice)
