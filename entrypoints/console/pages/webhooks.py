"""Pages of webhook endpoints and their deliveries."""

from typing import Any

from domain.webhooks.model import EVERY_TYPE, SUBSCRIBABLE
from entrypoints.console.context import PageContext, Pages, sudo
from entrypoints.console.rendering import number
from entrypoints.console.request import moment_of, number_or_text
from entrypoints.console.translation import N_, gettext, ngettext
from entrypoints.http.exchange import Response

PLACE = "/console/developers/webhooks"
WRITE = "webhooks:write"
_API = "/v1/webhook-endpoints"
_ONE = f"{_API}/{{endpoint}}"
_DELIVERY = f"{_ONE}/deliveries/{{delivery}}"

pages = Pages(PLACE, section="Developers", scope="webhooks:read")
pages.show("", "webhooks/list.html", limit=20, read={"found": _API}, title=N_("Webhooks"))
pages.show(
    "/<endpoint>/deliveries/<delivery>", "webhooks/delivery.html", read={"delivery": _DELIVERY, "endpoint": _ONE}
)
show_recovery = pages.show("/<endpoint>/recover", "webhooks/recover.html", read={"endpoint": _ONE}, scope=WRITE)
pages.show("/<endpoint>/delete", "webhooks/delete.html", read={"endpoint": _ONE}, scope=WRITE)


def _path(page: PageContext) -> str:
    return _ONE.format_map(page.ids)


@pages.get("/new", scope=WRITE)
@pages.get("/<endpoint>/edit", scope=WRITE)
async def show_form(page: PageContext) -> Response:
    """Show the form of a new or an existing endpoint."""
    endpoint = await page.api.get(_path(page)) if "endpoint" in page.ids else None
    wanted: dict[str, Any] = {"event_types": ["offer.changed"], "payload": "thin", "coalesce_seconds": 0}
    wanted |= (endpoint or {}) | (_given(page) if page.sent else {})
    return page.render(
        "webhooks/form.html",
        values=wanted,
        endpoint=endpoint,
        sources=(await page.api.get("/v1/sources", limit=100))["data"] if page.may("sources:read") else [],
        types=sorted(SUBSCRIBABLE),
        every=EVERY_TYPE in wanted["event_types"],
        fat="fat_webhooks" in page.principal.organisation.plan.features,
    )


@pages.post("/new", scope=WRITE, again=show_form)
async def create_endpoint(page: PageContext) -> Response:
    """Create an endpoint; its signing secret is shown on this response only."""
    endpoint = await page.api.post(_API, _given(page))
    return page.render("webhooks/secret.html", status=201, endpoint=endpoint, rotated=False)


@pages.post("/<endpoint>/edit", scope=WRITE, again=show_form)
async def save_endpoint(page: PageContext) -> Response:
    """Change an endpoint."""
    endpoint = await page.api.get(_path(page))
    await page.api.change("PATCH", _path(page), _given(page), page.form.number("version") or endpoint["version"])
    return page.redirect(f"{PLACE}/{endpoint['id']}", gettext("Endpoint saved"))


def _given(page: PageContext) -> dict[str, Any]:
    """Return the form's values as the API's request body; IDs are checked boxes or one per line."""
    form, known = page.form, dict[str, Any]()
    if "endpoint" in page.ids:
        known = {"description": None, "status": "enabled" if form["enabled"] == "true" else "disabled"}
    ids = {name: form.entries(name) for name in ("sources", "categories", "catalogues")}
    return {
        **known,
        **form.given("description"),
        "url": form.get("url"),
        "event_types": [EVERY_TYPE] if form["which"] == "all" else form.all("event_types"),
        "payload": form.get("payload", "thin"),
        "coalesce_seconds": number_or_text(form.get("coalesce_seconds", "0")),
        "filters": {name: chosen for name, chosen in ids.items() if chosen},
    }


@pages.get("/<endpoint>")
async def show_endpoint(page: PageContext) -> Response:
    """Show an endpoint with its deliveries."""
    endpoint, filters = await page.api.get(_path(page)), page.query.given("status", "type", "event")
    found = await page.filtered(f"{_path(page)}/deliveries", 20, filters)
    return page.render("webhooks/endpoint.html", status=200, endpoint=endpoint, found=found, filters=filters)


@pages.form("/<endpoint>/rotate", scope=WRITE)
@sudo(PLACE)
async def rotate_secret(page: PageContext) -> Response:
    """Create a new secret, shown once; the current one stays valid for the chosen time."""
    if page.submitted:
        hours = {"overlap_hours": number_or_text(page.form.get("overlap_hours", "24"))}
        rotated = await page.api.post(f"{_path(page)}/rotate-secret", hours)
        return page.render("webhooks/secret.html", endpoint=rotated, rotated=True)
    return page.render("webhooks/rotate.html", endpoint=await page.api.get(_path(page)))


@pages.post("/<endpoint>/test", scope=WRITE)
@pages.post("/<endpoint>/deliveries/<delivery>/resend", scope=WRITE)
async def send(page: PageContext) -> Response:
    """Send a test event or resend a completed delivery, and show the delivery."""
    again = "delivery" in page.ids
    made = await page.api.post(f"{_DELIVERY}/resend".format_map(page.ids) if again else f"{_path(page)}/test")
    notice = (
        gettext("Resending the delivery") if again else gettext("Test event sent. Reload the page to see the response.")
    )
    return page.redirect(f"{PLACE}/{made['endpoint']}/deliveries/{made['id']}", notice, tone="info")


@pages.post("/<endpoint>/recover", scope=WRITE, again=show_recovery)
async def recover(page: PageContext) -> Response:
    """Resend the deliveries that failed in a period."""
    span = {name: at for name in ("since", "until") if (at := moment_of(page.form[name]))}
    made = await page.api.post(f"{_path(page)}/recover", span)
    count = made["requeued"]
    notice = ngettext("Resending %(count)s delivery.", "Resending %(count)s deliveries.", count, count=number(count))
    if made["has_more"]:
        more = gettext("More deliveries failed in this period; resend again when these are done.")
        notice = f"{notice} {more}"
    return page.redirect(f"{PLACE}/{page.ids['endpoint']}", notice, tone="info")


@pages.post("/<endpoint>/delete", scope=WRITE)
async def delete_endpoint(page: PageContext) -> Response:
    """Delete an endpoint."""
    await page.api.change("DELETE", _path(page))
    return page.redirect(PLACE, gettext("Endpoint deleted"))
