"""Webhook endpoints: made, changed, tried, and brought back to life; each delivery with its body and what was answered."""

from typing import Any

from domain.webhooks.model import EVERY_TYPE, SUBSCRIBABLE
from entrypoints.console.context import PageContext, Pages, sudo
from entrypoints.console.request import moment_of, number_or_text
from entrypoints.http.exchange import Response

PLACE = "/console/developers/webhooks"
WRITE = "webhooks:write"
_API = "/v1/webhook-endpoints"
_ONE = f"{_API}/{{endpoint}}"
_DELIVERY = f"{_ONE}/deliveries/{{delivery}}"

pages = Pages(PLACE, section="Developers", scope="webhooks:read")
pages.show("", "webhooks/list.html", limit=20, read={"found": _API}, title="Webhooks")
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
    """Show the form of a new endpoint, or of one that there is."""
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
    """Make it; the signing secret is on the page that follows alone."""
    endpoint = await page.api.post(_API, _given(page))
    return page.render("webhooks/secret.html", status=201, endpoint=endpoint, rotated=False)


@pages.post("/<endpoint>/edit", scope=WRITE, again=show_form)
async def save_endpoint(page: PageContext) -> Response:
    """Change what an endpoint is sent."""
    endpoint = await page.api.get(_path(page))
    await page.api.change("PATCH", _path(page), _given(page), page.form.number("version") or endpoint["version"])
    return page.redirect(f"{PLACE}/{endpoint['id']}", "Saved.")


def _given(page: PageContext) -> dict[str, Any]:
    """Return what the form asks of an endpoint, as the operation takes it; ids are ticked, or written one a line."""
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
    """Show one endpoint with its deliveries."""
    endpoint, filters = await page.api.get(_path(page)), page.query.given("status", "type", "event")
    found = await page.filtered(f"{_path(page)}/deliveries", 20, filters)
    return page.render("webhooks/endpoint.html", status=200, endpoint=endpoint, found=found, filters=filters)


@pages.form("/<endpoint>/rotate", scope=WRITE)
@sudo(PLACE)
async def rotate_secret(page: PageContext) -> Response:
    """Make a new secret, shown once; the present one goes on signing for a while."""
    if page.submitted:
        hours = {"overlap_hours": number_or_text(page.form.get("overlap_hours", "24"))}
        rotated = await page.api.post(f"{_path(page)}/rotate-secret", hours)
        return page.render("webhooks/secret.html", endpoint=rotated, rotated=True)
    return page.render("webhooks/rotate.html", endpoint=await page.api.get(_path(page)))


@pages.post("/<endpoint>/test", scope=WRITE)
@pages.post("/<endpoint>/deliveries/<delivery>/resend", scope=WRITE)
async def send(page: PageContext) -> Response:
    """Send a test event, or a finished delivery once more, and show the delivery."""
    again = "delivery" in page.ids
    made = await page.api.post(f"{_DELIVERY}/resend".format_map(page.ids) if again else f"{_path(page)}/test")
    notice = (
        "It is sent again." if again else "A test event is on its way. Load the page again to see what is answered."
    )
    return page.redirect(f"{PLACE}/{made['endpoint']}/deliveries/{made['id']}", notice, tone="info")


@pages.post("/<endpoint>/recover", scope=WRITE, again=show_recovery)
async def recover(page: PageContext) -> Response:
    """Send again what failed within a span of time."""
    span = {name: at for name in ("since", "until") if (at := moment_of(page.form[name]))}
    made = await page.api.post(f"{_path(page)}/recover", span)
    more = " There are more: do it again once these are through." if made["has_more"] else ""
    notice = f"{made['requeued']} deliveries are sent again.{more}"
    return page.redirect(f"{PLACE}/{page.ids['endpoint']}", notice, tone="info")


@pages.post("/<endpoint>/delete", scope=WRITE)
async def delete_endpoint(page: PageContext) -> Response:
    """Delete it."""
    await page.api.change("DELETE", _path(page))
    return page.redirect(PLACE, "The endpoint is deleted.")
