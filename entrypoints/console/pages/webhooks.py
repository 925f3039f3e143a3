"""Pages of webhook endpoints and their deliveries."""

from typing import Any

from domain.webhooks.model import ALL_TYPES, SUBSCRIBABLE
from entrypoints.console.context import PageContext, Pages, require_recent_confirmation
from entrypoints.console.rendering import format_number
from entrypoints.console.request import convert_to_utc, parse_number_or_text
from entrypoints.console.translation import N_, gettext, ngettext
from entrypoints.http.exchange import Response

WEBHOOKS_PATH = "/console/developers/webhooks"
WRITE_SCOPE = "webhooks:write"
_API = "/v1/webhook-endpoints"
_ENDPOINT = f"{_API}/{{endpoint}}"
_DELIVERY = f"{_ENDPOINT}/deliveries/{{delivery}}"

pages = Pages(WEBHOOKS_PATH, section="Developers", scope="webhooks:read")
pages.register_template("", "webhooks/list.html", page_size=20, operation_paths={"results": _API}, title=N_("Webhooks"))
pages.register_template(
    "/<endpoint>/deliveries/<delivery>",
    "webhooks/delivery.html",
    operation_paths={"delivery": _DELIVERY, "endpoint": _ENDPOINT},
)
show_recovery = pages.register_template(
    "/<endpoint>/recover", "webhooks/recover.html", operation_paths={"endpoint": _ENDPOINT}, scope=WRITE_SCOPE
)
pages.register_template(
    "/<endpoint>/delete", "webhooks/delete.html", operation_paths={"endpoint": _ENDPOINT}, scope=WRITE_SCOPE
)


def _build_endpoint_path(page: PageContext) -> str:
    """Return the API path of the webhook endpoint in the page's path."""
    return _ENDPOINT.format_map(page.path_parameters)


@pages.register_get("/new", scope=WRITE_SCOPE)
@pages.register_get("/<endpoint>/edit", scope=WRITE_SCOPE)
async def show_endpoint_form(page: PageContext) -> Response:
    """Show the form of a new or existing webhook endpoint."""
    endpoint = await page.api.get(_build_endpoint_path(page)) if "endpoint" in page.path_parameters else None
    values: dict[str, Any] = {"event_types": ["offer.changed"], "payload": "thin", "coalesce_seconds": 0}
    values |= (endpoint or {}) | (_read_form(page) if page.is_post else {})
    return page.render(
        "webhooks/form.html",
        values=values,
        endpoint=endpoint,
        sources=(await page.api.get("/v1/sources", limit=100))["data"] if page.may("sources:read") else [],
        types=sorted(SUBSCRIBABLE),
        has_all_types=ALL_TYPES in values["event_types"],
        can_use_fat_payload="fat_webhooks" in page.principal.organisation.plan.features,
    )


@pages.register_post("/new", scope=WRITE_SCOPE, error_view=show_endpoint_form)
async def create_endpoint(page: PageContext) -> Response:
    """Create a webhook endpoint, and show its signing secret, once."""
    endpoint = await page.api.post(_API, _read_form(page))
    return page.render("webhooks/secret.html", status=201, endpoint=endpoint, rotated=False)


@pages.register_post("/<endpoint>/edit", scope=WRITE_SCOPE, error_view=show_endpoint_form)
async def save_endpoint(page: PageContext) -> Response:
    """Change a webhook endpoint."""
    endpoint = await page.api.get(_build_endpoint_path(page))
    await page.api.send_change(
        "PATCH", _build_endpoint_path(page), _read_form(page), page.form.get_number("version") or endpoint["version"]
    )
    return page.redirect(f"{WEBHOOKS_PATH}/{endpoint['id']}", gettext("Endpoint saved"))


def _read_form(page: PageContext) -> dict[str, Any]:
    """Return the body of the API request that creates or changes the endpoint in the form."""
    form, existing_only = page.form, dict[str, Any]()
    if "endpoint" in page.path_parameters:
        existing_only = {"description": None, "status": "enabled" if form["enabled"] == "true" else "disabled"}
    # The form lists IDs as checkboxes, or as text with one ID per line.
    ids = {name: form.split_values(name) for name in ("sources", "categories", "catalogues")}
    return {
        **existing_only,
        **form.select("description"),
        "url": form.get("url"),
        "event_types": [ALL_TYPES] if form["event_selection"] == "all" else form.get_all("event_types"),
        "payload": form.get("payload", "thin"),
        "coalesce_seconds": parse_number_or_text(form.get("coalesce_seconds", "0")),
        "filters": {name: chosen for name, chosen in ids.items() if chosen},
    }


@pages.register_get("/<endpoint>")
async def show_endpoint(page: PageContext) -> Response:
    """Show a webhook endpoint with the deliveries that match the filters."""
    endpoint, filters = await page.api.get(_build_endpoint_path(page)), page.query.select("status", "type", "event")
    found = await page.get_filtered_page(f"{_build_endpoint_path(page)}/deliveries", 20, filters)
    return page.render("webhooks/endpoint.html", status=200, endpoint=endpoint, results=found, filters=filters)


@pages.register_form("/<endpoint>/rotate", scope=WRITE_SCOPE)
@require_recent_confirmation(WEBHOOKS_PATH)
async def rotate_secret(page: PageContext) -> Response:
    """Show the form for a new signing secret; if it is submitted, create the secret and show it, once.

    The previous secret stays valid for the selected number of hours.
    """
    if page.must_process:
        hours = {"overlap_hours": parse_number_or_text(page.form.get("overlap_hours", "24"))}
        rotated = await page.api.post(f"{_build_endpoint_path(page)}/rotate-secret", hours)
        return page.render("webhooks/secret.html", endpoint=rotated, rotated=True)
    return page.render("webhooks/rotate.html", endpoint=await page.api.get(_build_endpoint_path(page)))


@pages.register_post("/<endpoint>/test", scope=WRITE_SCOPE)
@pages.register_post("/<endpoint>/deliveries/<delivery>/resend", scope=WRITE_SCOPE)
async def send_event(page: PageContext) -> Response:
    """Send a test event or resend a completed delivery, and show the delivery."""
    is_resend = "delivery" in page.path_parameters
    delivery = await page.api.post(
        f"{_DELIVERY}/resend".format_map(page.path_parameters) if is_resend else f"{_build_endpoint_path(page)}/test"
    )
    notice = gettext("Resending the delivery") if is_resend else gettext("Test event sent")
    return page.redirect(f"{WEBHOOKS_PATH}/{delivery['endpoint']}/deliveries/{delivery['id']}", notice, tone="info")


@pages.register_post("/<endpoint>/recover", scope=WRITE_SCOPE, error_view=show_recovery)
async def resend_failed_deliveries(page: PageContext) -> Response:
    """Resend the failed deliveries of a webhook endpoint that were created in a period."""
    period = {name: at for name in ("since", "until") if (at := convert_to_utc(page.form[name]))}
    recovery = await page.api.post(f"{_build_endpoint_path(page)}/recover", period)
    count = recovery["requeued"]
    notice = ngettext(
        "Resending %(count)s delivery.", "Resending %(count)s deliveries.", count, count=format_number(count)
    )
    if recovery["has_more"]:
        more = gettext("The period contains more failed deliveries. Resend them when the current ones are complete.")
        notice = f"{notice} {more}"
    return page.redirect(f"{WEBHOOKS_PATH}/{page.path_parameters['endpoint']}", notice, tone="info")


@pages.register_post("/<endpoint>/delete", scope=WRITE_SCOPE)
async def delete_endpoint(page: PageContext) -> Response:
    """Delete a webhook endpoint."""
    await page.api.send_change("DELETE", _build_endpoint_path(page))
    return page.redirect(WEBHOOKS_PATH, gettext("Endpoint deleted"))
