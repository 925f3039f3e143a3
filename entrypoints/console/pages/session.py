"""What a person chooses for the session: its end, organisation and mode, and the look."""

from secrets import token_hex
from typing import Final

from domain.kernel.paging import PageRequest
from entrypoints.console.page import Answer, Page
from entrypoints.console.places import SIGN_IN, safe_place
from entrypoints.console.visit import Visit

_MOST: Final = 100
"""Organisations that one chooses among."""


async def sign_out(visit: Visit) -> Answer:
    """End the session, here and on the server."""
    await visit.dependencies.sessions.revoke(visit.person.user.id, visit.person.session.id)
    answer = visit.redirect(SIGN_IN, "You are signed out.", tone="info", cookies=[visit.console.cookies.signed_out()])
    answer.headers.append((b"clear-site-data", b'"cache", "storage"'))
    return answer


async def look_at(visit: Visit) -> Answer:
    """Another organisation, or the other mode."""
    session = visit.person.session
    org = visit.form.get("org", session.org or "")
    livemode = visit.form.get("mode", "live" if session.livemode else "test") != "test"
    await visit.dependencies.sessions.look_at(session, org, livemode)
    moved = org != session.org
    place = "/console" if moved else safe_place(visit.form["next"])
    return visit.redirect(place, cookies=[visit.console.cookies.look(token_hex(8))])


async def organisations(visit: Visit) -> Answer:
    """The organisations that the person belongs to, to choose one."""
    page = await visit.dependencies.memberships.of_user(visit.person.user.id, PageRequest(limit=_MOST))
    return visit.render("session/organisations.html", orgs=page.items)


async def theme(visit: Visit) -> Answer:
    """Light, dark, or as the system says."""
    cookies = visit.console.cookies
    return visit.redirect(safe_place(visit.form["next"]), cookies=[cookies.theme(visit.form["theme"])])


PAGES: Final = (
    Page("/console/organisations", organisations, who="person"),
    Page("/console/sign-out", sign_out, methods=("POST",), who="person"),
    Page("/console/look-at", look_at, methods=("POST",), who="person"),
    Page("/console/theme", theme, methods=("POST",), who="anybody"),
)
