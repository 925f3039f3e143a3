"""Pages of sources: the list, and a source with its health, settings, credentials, emails and category rules."""

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from domain.catalogue import categories
from domain.ingestion.ports import Connectors
from domain.runs.ports import RunStore
from entrypoints.console.charts import DAILY_STATUS_DAYS, build_daily_status_bars
from entrypoints.console.context import OperationRefused, PageContext, Pages
from entrypoints.console.rendering import format_number
from entrypoints.console.request import FormData
from entrypoints.console.source_forms import (
    build_settings_fields,
    build_sign_in_methods,
    read_credentials_form,
    read_schedule_form,
    read_settings_form,
    set_allowed_senders,
)
from entrypoints.console.translation import N_, gettext, ngettext
from entrypoints.http.exchange import Response
from ports.clock import Clock

READ_SCOPE = "sources:read"
WRITE_SCOPE = "sources:write"
_API = "/v1/sources/{id}"
_MAX_PATHS = 50
"""Maximum number of category paths in a form."""
_SEPARATOR = " › "

pages = Pages("/console/sources", section=N_("Sources"), scope=READ_SCOPE)
for _rule, _template, _list, _limit in (
    ("/<id>/runs", "sources/runs.html", "runs", 25),
    ("/<id>/columns", "sources/mappings.html", "mappings", 20),
    ("/<id>/mail", "sources/mail.html", "inbound-messages", 8),
):
    pages.register_template(
        _rule, _template, page_size=_limit, operation_paths={"source": _API, "results": f"{_API}/{_list}"}
    )


def _build_api_path(page: PageContext) -> str:
    """Return the API path of the source in the page's path."""
    return _API.format_map(page.path_parameters)


async def find_source_names(page: PageContext) -> dict[str, str]:
    """Return the names of the organisation's sources by ID; empty if the person's role cannot read sources."""
    listed = (await page.api.get("/v1/sources", limit=100))["data"] if page.may(READ_SCOPE) else ()
    return {source["id"]: source["name"] for source in listed}


@pages.register_get(title=N_("Sources"))
async def list_sources(page: PageContext) -> Response:
    """Show the sources with the outcomes of their recent runs."""
    found = await page.api.get("/v1/sources", limit=25, starting_after=page.cursor)
    sources, since = found["data"], page.dependencies[Clock].now() - timedelta(days=DAILY_STATUS_DAYS)
    async with page.open_read_transaction() as tx:
        runs = await tx[RunStore].list_newest([source["id"] for source in sources], since) if sources else ()
    return page.render(
        "sources/list.html",
        results=found,
        daily_statuses=await build_daily_status_bars(page, sources),
        last_runs={run.source: run for run in runs},
    )


@pages.register_get("/<id>")
async def show_source(page: PageContext) -> Response:
    """Show a source with its health and actions."""
    return await _render_source(page)


async def _render_source(page: PageContext, test_result: Any = None) -> Response:
    """Render the page of a source. `test_result` is the result of a source test; None if no test was requested."""
    source = await page.api.get(_build_api_path(page))
    return page.render(
        "sources/source.html",
        source=source,
        runs=(await page.api.get(f"{_build_api_path(page)}/runs", limit=5))["data"],
        daily_statuses=(await build_daily_status_bars(page, [source]))[source["id"]],
        test_result=test_result,
    )


@pages.register_post("/<id>/<any(pause, resume, run, replay, test):action>", scope=WRITE_SCOPE, error_view=show_source)
async def perform_action(page: PageContext) -> Response:
    """Pause or resume a source, start a run, re-import the stored file, or test the source."""
    action, form, path = page.path_parameters["action"], page.form, _build_api_path(page)
    if action == "test":
        return await _render_source(page, await page.api.post(f"{path}/test"))
    if action in ("pause", "resume"):
        status = "paused" if action == "pause" else "active"
        await page.api.send_change("PATCH", path, {"status": status}, form.get_number("version"))
        notice = gettext("Source paused") if action == "pause" else gettext("Source resumed")
        return page.redirect(f"/console/sources/{page.path_parameters['id']}", notice)
    body = {"stream": form.get("stream", "catalogue")} | ({"accept_shrink": True} if form.get("accept_shrink") else {})
    run = await page.api.post(f"{path}/{'runs' if action == 'run' else 'replay'}", body)
    return page.redirect(f"/console/runs/{run['id']}")


@pages.register_get("/<id>/settings", scope=WRITE_SCOPE)
async def show_settings(page: PageContext) -> Response:
    """Show the forms for settings and credentials; after an error, with the entered values except secrets."""
    failed_form = page.request.path.rpartition("/")[2] if page.refused else ""
    source = await page.api.get(_build_api_path(page))
    info = page.dependencies[Connectors].find_connector(source["connector"])
    form = page.form if failed_form == "settings" else None
    config = source["config"] if form is None or info is None else read_settings_form(info.config_schema, form, {})
    senders = source["config"].get("inbound", {}).get("senders", [])
    return page.render(
        "sources/settings.html",
        source=source,
        settings=build_settings_fields(info.config_schema, config) if info else [],
        methods=build_sign_in_methods(info.credentials_schema) if info else [],
        senders="\n".join(senders) if form is None else form["senders"],
        form=form or FormData([]),
        failed_form=failed_form,
        has_schedule=source["kind"] in ("url", "api"),
        has_stock_schedule=info is not None and "stock" in info.streams,
    )


@pages.register_post("/<id>/settings", scope=WRITE_SCOPE, error_view=show_settings)
async def save_settings(page: PageContext) -> Response:
    """Change the settings of a source, unless somebody else has changed the source since the form was shown."""
    source, form = await page.api.get(_build_api_path(page)), page.form
    info = page.dependencies[Connectors].find_connector(source["connector"])
    changes: dict[str, Any] = {"name": form.get("name"), "licence_basis": form.get("licence_basis", "unknown")}
    if info is not None:
        config = read_settings_form(info.config_schema, form, source["config"])
        changes["config"] = set_allowed_senders(config, form) if "senders" in form else config
    if "interval_minutes" in form:
        changes["schedule"] = read_schedule_form(form)
    await page.api.send_change("PATCH", _build_api_path(page), changes, form.get_number("version"))
    return page.redirect(f"/console/sources/{source['id']}", gettext("Saved"))


@pages.register_post("/<id>/credentials", scope=WRITE_SCOPE, error_view=show_settings)
async def save_credentials(page: PageContext) -> Response:
    """Store the entered credentials of a source; if the form requests deletion, delete the stored credentials instead."""
    path, source_page = _build_api_path(page), f"/console/sources/{page.path_parameters['id']}"
    if page.form.get("delete_credentials"):
        await page.api.send_change("DELETE", f"{path}/credentials")
        return page.redirect(f"{source_page}/settings", gettext("Credentials deleted"))
    source = await page.api.get(path)
    info = page.dependencies[Connectors].find_connector(source["connector"])
    credentials = read_credentials_form(build_sign_in_methods(info.credentials_schema if info else None), page.form)
    await page.api.send_change("PUT", f"{path}/credentials", {"credentials": credentials})
    return page.redirect(source_page, gettext("Credentials saved"))


@pages.register_post("/<id>/mail/rotate", scope=WRITE_SCOPE)
async def replace_address(page: PageContext) -> Response:
    """Replace the inbound email address of a source."""
    page_url = f"/console/sources/{page.path_parameters['id']}/mail"
    try:
        await page.api.post(f"{_build_api_path(page)}/inbound-address/rotate")
    except OperationRefused as refused:
        return page.redirect(page_url, refused.detail, tone="bad")
    return page.redirect(page_url, gettext("Email address replaced. The previous address no longer works."))


@pages.register_get("/<id>/categories")
async def list_categories(page: PageContext) -> Response:
    """Show the category paths of a source with their rules."""
    rules = await page.api.get(f"{_build_api_path(page)}/categories")
    start = (page.form if page.refused else page.query).get_number("from") or 0
    entries, entered_by_key = (
        rules["categories"],
        dict(zip(page.form.get_all("path"), page.form.get_all("category"), strict=False)),
    )
    open_entries = [entry for entry in entries if "rule" not in entry and "inherited" not in entry]
    rows = []
    for entry in entries[start : start + _MAX_PATHS]:
        name_by_kind = {
            name: _SEPARATOR.join(entry[name]["path"]) for name in ("rule", "inherited", "suggestion") if name in entry
        }
        key = _format_path_key(entry)
        rows.append(
            entry | name_by_kind | {"key": key, "entered": entered_by_key.get(key, name_by_kind.get("rule", ""))}
        )
    return page.render(
        "sources/categories.html",
        source=await page.api.get(_build_api_path(page)),
        rows=rows,
        start=start,
        page_size=_MAX_PATHS,
        total=len(entries),
        omitted_count=rules["left_out"],
        unmapped_count=len(open_entries),
        suggestion_count=sum("suggestion" in entry for entry in open_entries),
        category_names=list(_map_category_ids()),
    )


def _format_path_key(entry: Mapping[str, Any]) -> str:
    """Return the category path of an entry of the API's list as JSON, the value of the form's hidden `path` field."""
    return json.dumps(entry["path"], ensure_ascii=False)


def _map_category_ids() -> dict[str, str]:
    """Return the IDs of all categories by path, such as `Furniture › Sofas`."""
    return {_SEPARATOR.join(category.path): category.id for category in categories.category_by_id().values()}


@pages.register_post("/<id>/categories", scope=WRITE_SCOPE, error_view=list_categories)
async def change_categories(page: PageContext) -> Response:
    """Save the category rules that the form changes.

    If the form requests suggestions, a path without an entered or inherited category gets its suggested category.
    """
    form, ids, page_url = page.form, _map_category_ids(), f"/console/sources/{page.path_parameters['id']}/categories"
    api, rules = f"{_build_api_path(page)}/categories", []
    entry_by_key = {_format_path_key(entry): entry for entry in (await page.api.get(api))["categories"]}
    for key, entered in zip(form.get_all("path"), form.get_all("category"), strict=False):
        if (entry := entry_by_key.get(key)) is None:
            continue
        category = ids.get(entered.strip(), entered.strip()) or None
        if form.get("action") == "apply_suggestions" and category is None and "inherited" not in entry:
            category = entry.get("suggestion", {}).get("id")
        if category != entry.get("rule", {}).get("id"):
            rules.append({"path": entry["path"], "category": category})
    if not rules:
        return page.redirect(page_url, gettext("No changes to save"), tone="info")
    run = (await page.api.post(api, {"rules": rules})).get("run")
    notice = ngettext(
        "%(count)s rule saved. Products are being updated.",
        "%(count)s rules saved. Products are being updated.",
        len(rules),
        count=format_number(len(rules)),
    )
    return page.redirect(f"/console/runs/{run['id']}" if run else page_url, notice)
