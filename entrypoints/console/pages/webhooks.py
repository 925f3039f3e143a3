"""Webhook endpoints: made, changed, tried, and brought back to life; each delivery with its body and what was answered."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from domain.webhooks.model import EVERY_TYPE, SUBSCRIBABLE
from entrypoints.console.context import PageContext, Pages, Refused, sudo
from entrypoints.console.request import moment_of, whole_number
from entrypoints.http.exchange import Response

PLACE: Final = "/console/developers/webhooks"
WRITE: Final = "webhooks:write"
_API: Final = "/v1/webhook-endpoints"
_EMPTY: Final[Any] = {"data": [], "has_more": False, "next_cursor": None}
_LIMIT: Final = 20

pages: Final = Pages(PLACE, section="Developers", scope="webhooks:read")


def _path(page: PageContext) -> str:
    return f"{_API}/{page.ids['endpoint']}"


@pages.get(title="Webhooks")
async def list_endpoints(page: PageContext) -> Response:
    """Show every endpoint of this mode."""
    found = await page.api.get(_API, limit=_LIMIT, starting_after=page.cursor)
    return page.render("webhooks/list.html", found=found, makes=page.may(WRITE))


@pages.get("/new", scope=WRITE)
@pages.get("/<endpoint>/edit", scope=WRITE)
async def show_form(page: PageContext, refused: Refused | None = None) -> Response:
    """Show the form of a new endpoint, or of one that there is."""
    endpoint = await page.api.get(_path(page)) if "endpoint" in page.ids else None
    wanted: dict[str, Any] = {"event_types": ["offer.changed"], "payload": "thin", "coalesce_seconds": 0}
    wanted |= (endpoint or {}) | (_given(page) if page.sent else {})
    return page.render(
        "webhooks/form.html",
        refused=refused,
        asked=wanted,
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
    endpoint, form = await page.api.get(_path(page)), page.form
    await page.api.patch(_path(page), _given(page), form.number("version") or endpoint["version"])
    return page.redirect(f"{PLACE}/{endpoint['id']}", "Saved.")


def _given(page: PageContext) -> dict[str, Any]:
    """Return what the form asks of an endpoint, as the operation takes it; ids are ticked, or written one a line."""
    form = page.form
    ids = {
        name: [id for text in form.all(name) for id in text.replace(",", " ").split()]
        for name in ("sources", "categories", "catalogues")
    }
    known: dict[str, Any] = {}
    if "endpoint" in page.ids:
        known = {"description": None, "status": "enabled" if form["enabled"] == "true" else "disabled"}
    return (
        known
        | form.given("description")
        | {
            "url": form.get("url"),
            "event_types": [EVERY_TYPE] if form["which"] == "all" else form.all("event_types"),
            "payload": form.get("payload", "thin"),
            "coalesce_seconds": _number(form.get("coalesce_seconds", "0")),
            "filters": {name: chosen for name, chosen in ids.items() if chosen},
        }
    )


def _number(text: str) -> Any:
    """Return the number; what is none goes on as it is, for the operation to say what is wrong with it."""
    return text if (number := whole_number(text)) is None else number


@pages.get("/<endpoint>")
async def show_endpoint(page: PageContext) -> Response:
    """Show one endpoint with its deliveries."""
    endpoint, filters = await page.api.get(_path(page)), page.query.given("status", "type", "event")
    refused, listed = None, _EMPTY
    try:
        path = f"{_path(page)}/deliveries"
        listed = await page.api.get(path, limit=_LIMIT, starting_after=page.cursor, **filters)
    except Refused as error:
        refused = error
    newest = [] if filters else listed["data"]
    return page.render(
        "webhooks/endpoint.html",
        endpoint=endpoint,
        found=listed,
        problem=refused,
        newest=newest,
        counts=Counter(one["status"] for one in newest),
        filters=filters,
        query=filters | {"cursor": page.query["cursor"]},
        changes=page.may(WRITE),
    )


@pages.form("/<endpoint>/rotate", scope=WRITE)
@sudo(PLACE)
async def rotate_secret(page: PageContext) -> Response:
    """Make a new secret, shown once; the present one goes on signing for a while."""
    refused = None
    if page.sent:
        try:
            hours = {"overlap_hours": _number(page.form.get("overlap_hours", "24"))}
            rotated = await page.api.post(f"{_path(page)}/rotate-secret", hours)
            return page.render("webhooks/secret.html", endpoint=rotated, rotated=True)
        except Refused as error:
            refused = error
    return page.render("webhooks/rotate.html", endpoint=await page.api.get(_path(page)), refused=refused)


@pages.post("/<endpoint>/test", scope=WRITE)
async def send_test(page: PageContext) -> Response:
    """Send a test event now, and show its delivery."""
    notice = "A test event is on its way. Load the page again to see what is answered."
    return _shown(page, await page.api.post(f"{_path(page)}/test"), notice)


def _shown(page: PageContext, delivery: Mapping[str, Any], notice: str) -> Response:
    return page.redirect(f"{PLACE}/{delivery['endpoint']}/deliveries/{delivery['id']}", notice, tone="info")


@pages.get("/<endpoint>/recover", scope=WRITE)
async def show_recovery(page: PageContext, refused: Refused | None = None) -> Response:
    """Ask within which span of time."""
    return page.render("webhooks/recover.html", endpoint=await page.api.get(_path(page)), refused=refused)


@pages.post("/<endpoint>/recover", scope=WRITE, again=show_recovery)
async def recover(page: PageContext) -> Response:
    """Send again what failed within a span of time."""
    span = {name: at for name in ("since", "until") if (at := moment_of(page.form[name]))}
    made = await page.api.post(f"{_path(page)}/recover", span)
    more = " There are more: do it again once these are through." if made["has_more"] else ""
    notice = f"{made['requeued']} deliveries are sent again.{more}"
    return page.redirect(f"{PLACE}/{page.ids['endpoint']}", notice, tone="info")


@pages.form("/<endpoint>/delete", scope=WRITE)
async def delete_endpoint(page: PageContext) -> Response:
    """Ask once more, then delete."""
    if not page.sent:
        return page.render("webhooks/delete.html", endpoint=await page.api.get(_path(page)))
    await page.api.delete(_path(page))
    return page.redirect(PLACE, "The endpoint is deleted.")


@pages.get("/<endpoint>/deliveries/<delivery>")
async def show_delivery(page: PageContext) -> Response:
    """Show one delivery: its body as sent, each attempt, and what was answered to the one that is asked for."""
    delivery = await page.api.get(f"{_path(page)}/deliveries/{page.ids['delivery']}")
    attempt, count = page.query.number("attempt"), len(delivery["attempts"])
    return page.render(
        "webhooks/delivery.html",
        delivery=delivery,
        endpoint=await page.api.get(_path(page)),
        attempt=0 if count == 1 else attempt,
        sends=page.may(WRITE),
    )


@pages.post("/<endpoint>/deliveries/<delivery>/resend", scope=WRITE)
async def resend(page: PageContext) -> Response:
    """Send a finished delivery once more."""
    path = f"{_path(page)}/deliveries/{page.ids['delivery']}/resend"
    return _shown(page, await page.api.post(path), "It is sent again.")
