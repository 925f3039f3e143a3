"""Webhook endpoints: made, changed, tried, and brought back to life; each delivery with its body and what was answered."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from domain.webhooks.model import EVERY_TYPE, SUBSCRIBABLE, AttemptFailure
from entrypoints.console.asked import whole_number
from entrypoints.console.moments import moment_of
from entrypoints.console.page import Answer, Entry, Page
from entrypoints.console.portions import piece_of, portion
from entrypoints.console.refusals import Refused
from entrypoints.console.sudo import sudo
from entrypoints.console.visit import Visit

PLACE: Final = "/console/developers/webhooks"
STATUSES: Final = ("", "pending", "sending", "succeeded", "failed")
TYPES: Final = tuple(sorted(SUBSCRIBABLE))
FAILURES: Final = {
    AttemptFailure.TIMEOUT: "It did not answer within 15 seconds.",
    AttemptFailure.REFUSED_ADDRESS: "Its name leads to an address that is not public.",
    AttemptFailure.DNS: "Its name leads nowhere.",
    AttemptFailure.TLS: "Its certificate was not good.",
    AttemptFailure.CONNECT: "It took no connection.",
    AttemptFailure.HTTP_STATUS: "It answered something else than 2xx.",
    AttemptFailure.REDIRECT: "It led elsewhere, and redirects are not followed.",
    AttemptFailure.ABORTED: "It asked for no more, or nothing was left to send.",
}
_API: Final = "/v1/webhook-endpoints"
_EMPTY: Final[Any] = {"data": [], "has_more": False, "next_cursor": None}
_LIMIT: Final = 20
_BODY: Final = 16_000
"""Bytes of a page that a delivery's body may fill."""
_TONES: Final = {"succeeded": "good", "failed": "bad"}
_MOST_SOURCES: Final = 100


async def endpoints(visit: Visit) -> Answer:
    """Every endpoint of this mode."""
    found = await visit.api.get(_API, limit=_LIMIT, starting_after=visit.query.get("cursor") or None)
    return visit.render("webhooks/list.html", found=found, makes=visit.may("webhooks:write"))


async def new_endpoint(visit: Visit) -> Answer:
    """The form, and what it makes: the signing secret is on that page alone."""
    if visit.asked.method != "POST":
        return await _form(visit, {"event_types": ["offer.changed"], "payload": "thin", "coalesce_seconds": 0})
    asked = _settings(visit)
    try:
        made = await visit.api.post(_API, asked)
    except Refused as error:
        return await _form(visit, asked, error)
    return visit.render("webhooks/secret.html", status=201, endpoint=made, rotated=False)


async def endpoint(visit: Visit) -> Answer:
    """One endpoint with its deliveries."""
    found = await visit.api.get(f"{_API}/{visit.ids['endpoint']}")
    filters = {name: value for name in ("status", "type", "event") if (value := visit.query.get(name))}
    refused, listed = None, _EMPTY
    try:
        cursor = visit.query.get("cursor") or None
        listed = await visit.api.get(f"{_API}/{found['id']}/deliveries", limit=_LIMIT, starting_after=cursor, **filters)
    except Refused as error:
        refused = error
    newest = listed["data"] if not filters else []
    return visit.render(
        "webhooks/endpoint.html",
        endpoint=found,
        found=listed,
        refused=refused,
        strip=strip_of(newest),
        counts=Counter(one["status"] for one in newest),
        statuses=STATUSES,
        filters=filters,
        query=filters | {"cursor": visit.query["cursor"]},
        changes=visit.may("webhooks:write"),
    )


def strip_of(deliveries: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """A tone and a sentence for each delivery, the oldest first."""
    return [
        (_TONES.get(one["status"], "warn"), f"{one['type']} {one['status']}, {one['created_at']}")
        for one in reversed(deliveries)
    ]


async def edit(visit: Visit) -> Answer:
    """Change what an endpoint is sent."""
    found = await visit.api.get(f"{_API}/{visit.ids['endpoint']}")
    if visit.asked.method != "POST":
        return await _form(visit, found, endpoint=found)
    asked = _settings(visit) | {"status": "enabled" if visit.form["enabled"] == "true" else "disabled"}
    asked["description"] = asked.get("description") or None
    version = visit.form.number("version") or found["version"]
    try:
        await visit.api.patch(f"{_API}/{found['id']}", asked, version=version)
    except Refused as error:
        return await _form(visit, found | asked, error, endpoint=found)
    return visit.redirect(f"{PLACE}/{found['id']}", "Saved.")


@sudo(PLACE)
async def rotate(visit: Visit) -> Answer:
    """A new secret, shown once; the present one goes on signing for a while."""
    path = f"{_API}/{visit.ids['endpoint']}"
    if visit.asked.method != "POST":
        return visit.render("webhooks/rotate.html", endpoint=await visit.api.get(path), refused=None)
    try:
        made = await visit.api.post(
            f"{path}/rotate-secret", {"overlap_hours": _number(visit.form["overlap_hours"], 24)}
        )
    except Refused as error:
        return visit.render(
            "webhooks/rotate.html", status=error.status, endpoint=await visit.api.get(path), refused=error
        )
    return visit.render("webhooks/secret.html", endpoint=made, rotated=True)


async def test(visit: Visit) -> Answer:
    """Send a test event now, and show its delivery."""
    made = await visit.api.post(f"{_API}/{visit.ids['endpoint']}/test")
    return visit.redirect(
        _delivery_place(made), "A test event is on its way. Load the page again to see what is answered.", tone="info"
    )


async def recover(visit: Visit) -> Answer:
    """Send again what failed within a span of time."""
    path = f"{_API}/{visit.ids['endpoint']}"
    place = f"{PLACE}/{visit.ids['endpoint']}"
    if visit.asked.method != "POST":
        return visit.render("webhooks/recover.html", endpoint=await visit.api.get(path), refused=None, errors={})
    asked = {name: at for name in ("since", "until") if (at := moment_of(visit.form[name]))}
    try:
        made = await visit.api.post(f"{path}/recover", asked)
    except Refused as error:
        told = {"endpoint": await visit.api.get(path), "refused": error, "errors": error.fields}
        return visit.render("webhooks/recover.html", status=error.status, **told)
    more = " There are more: do it again once these are through." if made["has_more"] else ""
    return visit.redirect(place, f"{made['requeued']} deliveries are sent again.{more}", tone="info")


async def delete(visit: Visit) -> Answer:
    """Ask once more, then delete."""
    path = f"{_API}/{visit.ids['endpoint']}"
    if visit.asked.method != "POST":
        return visit.render("webhooks/delete.html", endpoint=await visit.api.get(path))
    await visit.api.delete(path)
    return visit.redirect(PLACE, "The endpoint is deleted.")


async def delivery(visit: Visit) -> Answer:
    """One delivery: its body as sent, each attempt, and what was answered."""
    path = f"{_API}/{visit.ids['endpoint']}"
    found = await visit.api.get(f"{path}/deliveries/{visit.ids['delivery']}")
    to, every = await visit.api.get(path), found["attempts"]
    asked = visit.query.number("attempt")
    alone = asked is not None and asked < len(every)
    return visit.render(
        "webhooks/delivery.html",
        delivery=found,
        endpoint=to,
        attempts=portion(every, asked if alone else 0, 1 if alone else len(every)),
        body=piece_of(found["body"] or "", visit.query.number("from"), _BODY),
        failures=FAILURES,
        sends=visit.may("webhooks:write"),
    )


async def resend(visit: Visit) -> Answer:
    """Send a finished delivery once more."""
    path = f"{_API}/{visit.ids['endpoint']}/deliveries/{visit.ids['delivery']}"
    return visit.redirect(_delivery_place(await visit.api.post(f"{path}/resend")), "It is sent again.", tone="info")


def _delivery_place(delivery: Mapping[str, Any]) -> str:
    return f"{PLACE}/{delivery['endpoint']}/deliveries/{delivery['id']}"


def _settings(visit: Visit) -> dict[str, Any]:
    """What the form asks of an endpoint, as the operation takes it."""
    form = visit.form
    filters = {name: chosen for name in ("sources", "categories", "catalogues") if (chosen := _several(visit, name))}
    asked: dict[str, Any] = {
        "url": form.get("url"),
        "event_types": [EVERY_TYPE] if form["which"] == "all" else form.all("event_types"),
        "payload": form.get("payload", "thin"),
        "coalesce_seconds": _number(form["coalesce_seconds"], 0),
        "filters": filters,
    }
    return asked | ({"description": form.get("description")} if form.get("description") else {})


def _several(visit: Visit, name: str) -> list[str]:
    """Ids that were ticked, or written one a line."""
    return [id_ for text in visit.form.all(name) for id_ in text.replace(",", " ").split()]


def _number(text: str, otherwise: int) -> Any:
    """The number; what is none goes on as it is, for the operation to say what is wrong with it."""
    stripped = text.strip()
    return (stripped or otherwise) if (number := whole_number(stripped)) is None else number


async def _form(
    visit: Visit,
    asked: Mapping[str, Any],
    refused: Refused | None = None,
    endpoint: Mapping[str, Any] | None = None,
) -> Answer:
    sources = []
    if visit.may("sources:read"):
        sources = (await visit.api.get("/v1/sources", limit=_MOST_SOURCES))["data"]
    return visit.render(
        "webhooks/form.html",
        status=200 if refused is None else refused.status,
        refused=refused,
        errors=refused.fields if refused is not None else {},
        asked=asked,
        endpoint=endpoint,
        sources=sources,
        types=TYPES,
        every=EVERY_TYPE in asked["event_types"],
        fat="fat_webhooks" in visit.principal.organisation.plan.features,
    )


_WRITE: Final = "webhooks:write"
PAGES: Final = (
    Page(PLACE, endpoints, scope="webhooks:read", menu=Entry("Developers", "Webhooks")),
    Page(f"{PLACE}/new", new_endpoint, methods=("GET", "POST"), scope=_WRITE, menu="Developers"),
    Page(f"{PLACE}/<endpoint>", endpoint, scope="webhooks:read", menu="Developers"),
    Page(f"{PLACE}/<endpoint>/edit", edit, methods=("GET", "POST"), scope=_WRITE, menu="Developers"),
    Page(f"{PLACE}/<endpoint>/rotate", rotate, methods=("GET", "POST"), scope=_WRITE, menu="Developers"),
    Page(f"{PLACE}/<endpoint>/recover", recover, methods=("GET", "POST"), scope=_WRITE, menu="Developers"),
    Page(f"{PLACE}/<endpoint>/delete", delete, methods=("GET", "POST"), scope=_WRITE, menu="Developers"),
    Page(f"{PLACE}/<endpoint>/test", test, methods=("POST",), scope=_WRITE, menu="Developers"),
    Page(f"{PLACE}/<endpoint>/deliveries/<delivery>", delivery, scope="webhooks:read", menu="Developers"),
    Page(
        f"{PLACE}/<endpoint>/deliveries/<delivery>/resend", resend, methods=("POST",), scope=_WRITE, menu="Developers"
    ),
)
