"""Sources: all of them at a glance; one with its health, settings, schedule and credentials."""

from typing import Any, Final

from entrypoints.console.asked import Values
from entrypoints.console.health import health_of, wrong_of
from entrypoints.console.page import Answer, Entry, Page
from entrypoints.console.refusals import Refused
from entrypoints.console.schema_forms import credentials_given, settings_fields, settings_given, ways_of
from entrypoints.console.source_fields import INTERVALS, LICENCES, READ, WRITE, schedule_given, with_senders
from entrypoints.console.visit import Visit


async def list_all(visit: Visit) -> Answer:
    """All sources."""
    cursor = visit.query.get("cursor") or None
    found = await visit.api.get("/v1/sources", limit=25, starting_after=cursor)
    health = await health_of(visit, found["data"])
    wrong = {source["id"]: wrong_of(source) for source in found["data"]}
    return visit.render("sources/list.html", found=found, health=health, wrong=wrong, cursor=cursor or "")


async def overview(visit: Visit) -> Answer:
    """One source: how it is, and what may be done about it."""
    return await _overview(visit)


async def _overview(visit: Visit, refusal: Refused | None = None, tested: Any = None) -> Answer:
    source = await visit.api.get(f"/v1/sources/{visit.ids['id']}")
    runs = await visit.api.get(f"/v1/sources/{source['id']}/runs", limit=5)
    health = (await health_of(visit, [source]))[source["id"]]
    return visit.render(
        "sources/source.html",
        status=refusal.status if refusal else 200,
        source=source,
        runs=runs["data"],
        health=health,
        wrong=wrong_of(source),
        refused=refusal,
        tested=tested,
    )


async def act(visit: Visit) -> Answer:
    """Pause, resume, read now, read again, try out."""
    id, what = visit.ids["id"], visit.ids["what"]
    try:
        if what == "test":
            return await _overview(visit, tested=await visit.api.post(f"/v1/sources/{id}/test"))
        if what in ("pause", "resume"):
            status = "paused" if what == "pause" else "active"
            version = visit.form.number("version")
            await visit.api.patch(f"/v1/sources/{id}", {"status": status}, version=version or None)
            said = "Paused: nothing is read until you resume it." if what == "pause" else "It is active again."
            return visit.redirect(f"/console/sources/{id}", said)
        body: dict[str, Any] = {"stream": visit.form.get("stream", "catalogue")}
        if visit.form.get("accept_shrink"):
            body["accept_shrink"] = True
        run = await visit.api.post(f"/v1/sources/{id}/{'runs' if what == 'run' else 'replay'}", body)
    except Refused as refusal:
        if refusal.status == 404:
            raise
        return await _overview(visit, refusal)
    return visit.redirect(f"/console/runs/{run['id']}")


async def settings(visit: Visit) -> Answer:
    """The form of its settings."""
    return await _settings(visit)


async def _settings(visit: Visit, refusal: Refused | None = None, part: str = "") -> Answer:
    source = await visit.api.get(f"/v1/sources/{visit.ids['id']}")
    info = visit.dependencies.connectors.info(source["connector"])
    given = visit.form if refusal is not None and part == "settings" else None
    config = source["config"] if given is None or info is None else settings_given(info.config_schema, given, {})
    senders = source["config"].get("inbound", {}).get("senders", [])
    return visit.render(
        "sources/settings.html",
        status=refusal.status if refusal else 200,
        source=source,
        info=info,
        fields=settings_fields(info.config_schema, config) if info else [],
        ways=ways_of(info.credentials_schema) if info and info.credentials_schema else [],
        senders="\n".join(senders) if given is None else given["senders"],
        given=given or Values([]),
        refused=refusal,
        part=part,
        licences=LICENCES,
        intervals=INTERVALS,
        pulled=source["kind"] in ("url", "api"),
        stock=info is not None and "stock" in info.streams,
    )


async def save_settings(visit: Visit) -> Answer:
    """Change it, at the version that the form was made of."""
    source = await visit.api.get(f"/v1/sources/{visit.ids['id']}")
    info, form = visit.dependencies.connectors.info(source["connector"]), visit.form
    changes: dict[str, Any] = {"name": form.get("name"), "licence_basis": form.get("licence_basis", "unknown")}
    if info is not None:
        changes["config"] = settings_given(info.config_schema, form, source["config"])
        changes["config"] = with_senders(changes["config"], form["senders"], asked="senders" in form)
    if "interval_minutes" in form:
        changes["schedule"] = schedule_given(form)
    try:
        await visit.api.patch(f"/v1/sources/{source['id']}", changes, version=form.number("version") or None)
    except Refused as refusal:
        return await _settings(visit, refusal, "settings")
    return visit.redirect(f"/console/sources/{source['id']}", "Saved.")


async def save_credentials(visit: Visit) -> Answer:
    """Store what it signs in with, or forget it; they are never shown again."""
    id = visit.ids["id"]
    try:
        if visit.form.get("forget"):
            await visit.api.delete(f"/v1/sources/{id}/credentials")
            return visit.redirect(f"/console/sources/{id}/settings", "The credentials are forgotten.")
        source = await visit.api.get(f"/v1/sources/{id}")
        info = visit.dependencies.connectors.info(source["connector"])
        ways = ways_of(info.credentials_schema) if info and info.credentials_schema else []
        body = {"credentials": credentials_given(ways, visit.form)}
        await visit.api.put(f"/v1/sources/{id}/credentials", body)
    except Refused as refusal:
        if refusal.status == 404:
            raise
        return await _settings(visit, refusal, "credentials")
    return visit.redirect(f"/console/sources/{id}", "The credentials are sealed and stored.")


PAGES: Final = (
    Page("/console/sources", list_all, scope=READ, menu=Entry("Sources", "Sources")),
    Page("/console/sources/<id>", overview, scope=READ, menu="Sources"),
    Page("/console/sources/<id>/settings", settings, scope=WRITE, menu="Sources"),
    Page("/console/sources/<id>/settings", save_settings, methods=("POST",), scope=WRITE, menu="Sources"),
    Page("/console/sources/<id>/credentials", save_credentials, methods=("POST",), scope=WRITE, menu="Sources"),
    Page(
        "/console/sources/<id>/<any(pause, resume, run, replay, test):what>",
        act,
        methods=("POST",),
        scope=WRITE,
        menu="Sources",
    ),
)
