"""Pages of sources: the list, and a source with its health, settings, credentials, emails and category rules."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from domain.catalogue.categories import category_by_id
from domain.ingestion.ports import Connectors
from domain.kernel.clock_schedule import list_zones
from domain.runs.model import OpenReview
from domain.runs.ports import RunStore
from entrypoints.console.charts import DAILY_STATUS_DAYS, build_daily_status_bars
from entrypoints.console.context import OperationRefused, PageContext, Pages
from entrypoints.console.rendering import (
    CATEGORY_SEPARATOR,
    LABELS,
    ListPortion,
    format_category,
    format_number,
    format_time_unit,
)
from entrypoints.console.request import FormData
from entrypoints.console.source_forms import (
    ScheduleForm,
    build_settings_fields,
    build_sign_in_methods,
    read_credentials_form,
    read_schedule_form,
    read_settings_form,
    set_allowed_senders,
)
from entrypoints.console.source_health import (
    HISTORY_DAYS,
    MAX_SOURCES,
    PRICE_DAYS,
    SCORED_FIELDS,
    VendorScore,
    load_history,
    load_scorecard,
    load_source_states,
)
from entrypoints.console.translation import N_, gettext, ngettext
from entrypoints.http.exchange import Response
from ports.clock import Clock

READ_SCOPE = "sources:read"
WRITE_SCOPE = "sources:write"
_API = "/v1/sources/{id}"
_MAX_PATHS = 50
"""Maximum number of category paths in a form."""
_MAX_LISTED = 25
"""Maximum number of sources on a page of the list."""
_MAX_UNSEARCHED = 10
"""Number of sources up to which the list has no search."""

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


async def load_sources(page: PageContext) -> dict[str, Any]:
    """Return the organisation's newest sources by ID; empty if the person's role cannot read sources."""
    listed = (await page.api.get("/v1/sources", limit=100))["data"] if page.may(READ_SCOPE) else ()
    return {source["id"]: source for source in listed}


async def find_source_names(page: PageContext) -> dict[str, str]:
    """Return the names of the organisation's newest sources by ID; empty if the person's role cannot read sources."""
    return {id: source["name"] for id, source in (await load_sources(page)).items()}


async def list_open_reviews(page: PageContext, sources: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the sources whose newest imports have open problems or unconfirmed mappings, for the macro `source_reviews`.

    The result is empty if the person's role cannot read sources.

    Args:
        page: The context.
        sources: The sources as in the API.
    """
    if not sources or not page.may(READ_SCOPE):
        return []
    source_by_id = {source["id"]: source for source in sources}
    since = page.dependencies[Clock].now() - timedelta(days=DAILY_STATUS_DAYS)
    async with page.open_read_transaction() as tx:
        reviews = await tx[RunStore].list_open_reviews(list(source_by_id), since)
    return [{"source": source_by_id[review.source], "review": review} for review in reviews]


@pages.register_get(title=N_("Sources"))
async def list_sources(page: PageContext) -> Response:
    """Show the sources with the outcomes of their imports, those that need attention first."""
    found = await page.api.get("/v1/sources", limit=MAX_SOURCES, starting_after=page.cursor)
    states = sorted(await load_source_states(page, found["data"]), key=lambda state: state.rank)
    groups = Counter(state.group for state in states)
    filters = page.query.select("status", "q")
    words = filters.get("q", "").casefold().split()
    chosen = [
        state
        for state in states
        if filters.get("status", state.group) == state.group
        and all(word in state.source["name"].casefold() for word in words)
    ]
    portion = ListPortion.from_items(chosen, page.query.get_number("from"), _MAX_LISTED)
    reviews_by_source: dict[str, list[OpenReview]] = {}
    for each in await list_open_reviews(page, [state.source for state in portion.items]):
        reviews_by_source.setdefault(each["source"]["id"], []).append(each["review"])
    return page.render(
        "sources/list.html",
        reviews_by_source=reviews_by_source,
        results=found,
        portion=portion,
        daily_statuses=await build_daily_status_bars(page, [state.source for state in portion.items]),
        groups={name: groups[name] for name in LABELS["source_groups"] if groups[name]},
        total=len(states),
        filters=filters,
        has_search=len(states) > _MAX_UNSEARCHED,
    )


@pages.register_get("/scorecard")
async def show_scorecard(page: PageContext) -> Response:
    """Show the sources side by side: completeness, problems, punctuality, stock and matches of their data."""
    found = await page.api.get("/v1/sources", limit=MAX_SOURCES)
    scores, is_complete = await load_scorecard(page, await load_source_states(page, found["data"]))
    sort = page.query.get("sort", "name")
    key, is_descending = SCORE_ORDERS.get(sort.removeprefix("-"), SCORE_ORDERS["name"]), sort.startswith("-")
    scores.sort(key=lambda score: score.source["name"].casefold())
    known = sorted((score for score in scores if key(score) is not None), key=key, reverse=is_descending)
    return page.render(
        "sources/scorecard.html",
        scores=known + [score for score in scores if key(score) is None],
        sort=sort,
        is_complete=is_complete,
        has_more=found["has_more"],
        max_sources=MAX_SOURCES,
        days=HISTORY_DAYS,
        price_days=PRICE_DAYS,
        fields=SCORED_FIELDS,
    )


SCORE_ORDERS: Final[Mapping[str, Callable[[VendorScore], Any]]] = {
    "name": lambda score: score.source["name"].casefold(),
    "products": lambda score: score.products,
    "completeness": lambda score: score.completeness,
    "problems": lambda score: score.problem_rate,
    "failed": lambda score: score.failed,
    "on_time": lambda score: score.on_time,
    "prices": lambda score: score.price_changes,
    "out_of_stock": lambda score: score.out_of_stock,
    "matched": lambda score: score.matched,
}
"""Orders of the scorecard by the value of `sort`, after an optional minus sign for the highest first."""


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
        state=(await load_source_states(page, [source]))[0],
        runs=(await page.api.get(f"{_build_api_path(page)}/runs", limit=5))["data"],
        history=(history := await load_history(page, source["id"])),
        history_days=HISTORY_DAYS,
        format_age=lambda age: format_time_unit(round(age, 1), (history.age_chart or {})["unit"]),
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
    await page.api.send_change("PATCH", _build_api_path(page), changes, form.get_number("version"))
    return page.redirect(f"/console/sources/{source['id']}", gettext("Saved"))


@pages.register_form("/<id>/schedule", scope=WRITE_SCOPE)
async def edit_schedule(page: PageContext) -> Response:
    """Show the schedule of a source, and save it unless somebody else has changed the source since the form was shown."""
    source = await page.api.get(_build_api_path(page))
    if page.must_process:
        changes = {"schedule": read_schedule_form(page.form)}
        await page.api.send_change("PATCH", _build_api_path(page), changes, page.form.get_number("version"))
        return page.redirect(f"/console/sources/{source['id']}/schedule", gettext("Saved"))
    info = page.dependencies[Connectors].find_connector(source["connector"])
    errors = page.refused.fields if page.refused else {}
    return page.render(
        "sources/schedule.html",
        source=source,
        form=ScheduleForm.from_form(page.form) if page.refused else ScheduleForm.from_schedule(source["schedule"]),
        zones=[(zone, zone) for zone in list_zones()],
        time_error=next((text for name, text in errors.items() if name.startswith("schedule.at")), ""),
        day_error=next((text for name, text in errors.items() if name.startswith("schedule.weekdays")), ""),
        has_stock=info is not None and "stock" in info.streams,
    )


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
            name: CATEGORY_SEPARATOR.join(entry[name]["path"])
            for name in ("rule", "inherited", "suggestion")
            if name in entry
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
    return {format_category(id): id for id in category_by_id()}


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
