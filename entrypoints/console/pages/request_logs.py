"""Requests of the organisation: filtered, and each in full."""

from collections.abc import Mapping
from typing import Any, Final

from domain.access.ports import KeyStore
from domain.kernel.paging import PageRequest
from domain.people.usecases.keys import KEY_MAKERS
from entrypoints.console.moments import moment_of
from entrypoints.console.page import Answer, Entry, Page
from entrypoints.console.refusals import Refused
from entrypoints.console.visit import Visit

PLACE: Final = "/console/developers/requests"
_EMPTY: Final[Any] = {"data": [], "has_more": False, "next_cursor": None}
_FILTERS: Final = ("status", "method", "route", "actor", "error_code")
_MOST_KEYS: Final = 100
_LIMIT: Final = 30


async def request_logs(visit: Visit) -> Answer:
    """The list."""
    filters = dict(visit.query.given(*_FILTERS))
    times = {name: visit.query[name] for name in ("since", "until") if visit.query.get(name)}
    asked = filters | {name: moment_of(text) for name, text in times.items()}
    cursor = visit.query.get("cursor") or None
    found, refused = _EMPTY, None
    try:
        found = await visit.api.get("/v1/request-logs", limit=_LIMIT, starting_after=cursor, **asked)
    except Refused as error:
        refused = error
    return visit.render(
        "request_logs/list.html",
        status=200 if refused is None else refused.status,
        found=found,
        refused=refused,
        errors=_errors(refused),
        filters=filters | times,
        callers=await _callers(visit, filters.get("actor", "")),
        query=filters | times | {"cursor": visit.query["cursor"]},
    )


async def _callers(visit: Visit, chosen: str) -> list[tuple[str, str]]:
    """Whose requests one may want to see: one's own, those of each key in use, and whoever is asked for already."""
    found = [("", "Anybody"), (visit.person.user.id, "You, in the console")]
    if visit.principal.role in KEY_MAKERS:
        async with visit.reading() as tx:
            page = await tx[KeyStore].page(PageRequest(limit=_MOST_KEYS))
        found += [(key.id, f"Key {key.name} (…{key.last4})") for key in page.items]
    known = {value for value, _ in found}
    return found if chosen in known else [*found, (chosen, chosen)]


def _errors(refused: Refused | None) -> Mapping[str, str]:
    return {name.removeprefix("query."): text for name, text in refused.fields.items()} if refused else {}


async def request_log(visit: Visit) -> Answer:
    """One request, with what was audited of it."""
    found = await visit.api.get(f"/v1/request-logs/{visit.ids['request']}")
    return visit.render("request_logs/one.html", log=found)


PAGES: Final = (
    Page(PLACE, request_logs, scope="request_logs:read", menu=Entry("Developers", "Request logs")),
    Page(f"{PLACE}/<request>", request_log, scope="request_logs:read", menu="Developers"),
)
