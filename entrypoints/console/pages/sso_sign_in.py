"""Coming in by an organisation's own identity provider: the browser sent there, and what it brings back."""

from contextlib import suppress
from secrets import token_hex
from typing import Final
from urllib.parse import urlsplit

from domain.kernel.errors import NotFound
from domain.people.model import Method
from domain.people.usecases.signing_in import Entered
from domain.people.usecases.throttling import network_of
from domain.sso.usecases.signing_in import Vouched
from entrypoints.console.acting import acting_in
from entrypoints.console.cookies import Header, set_cookie
from entrypoints.console.pacing import take_turn
from entrypoints.console.page import Answer, Page
from entrypoints.console.places import safe_place
from entrypoints.console.visit import Visit
from entrypoints.console.visitors import device_of, entered_cookies, visitor_of
from ports.limits import Budget

ATTEMPTS: Final = 20
"""Sign-ins that one address may begin at once; then one every three seconds."""
RATE: Final = 1 / 3
LONGEST_EMAIL: Final = 254
_ANSWER: Final = ("code", "state", "iss", "error")


async def start(visit: Visit) -> Answer:
    """Ask for the address, or lead to the provider of whoever has it.

    There is a page between, for browsers let no form lead to another site, and so that one sees where one is led.
    """
    email = visit.query.get("email")[:LONGEST_EMAIL]
    place = safe_place(visit.query["next"])
    if not email:
        return visit.render("sso/start.html", place=place)
    await _take_turn(visit)
    begun = await visit.dependencies.sso.sign_in.begin(email, place, again=visit.signed_in is not None)
    answer = visit.render("sso/leaving.html", url=begun.url, host=urlsplit(begun.url).netloc, email=email)
    answer.headers.append(_cookie(visit, begun.cookie, begun.seconds))
    if visit.asked.headers.get("sec-fetch-site") == "same-origin":
        # A link from elsewhere signs nobody in by itself: the page's button does, so that one sees whose sign-in it is.
        answer.headers.append((b"refresh", f"0;url={begun.url}".encode("ascii", "ignore")))
    return answer


async def callback(visit: Visit) -> Answer:
    """What the provider sends the browser back with; whoever it names is signed in."""
    await _take_turn(visit)
    parts = visit.dependencies
    answer = {name: visit.query[name] for name in _ANSWER if name in visit.query}
    cookie = visit.asked.cookies.get(_name(visit), "")
    vouched = await parts.sso.sign_in.answered(visit.ids["org"], cookie, answer)
    entered = await _admitted(visit, vouched)
    cookies = [*entered_cookies(visit, entered), _cookie(visit, "", 0), visit.console.cookies.look(token_hex(8))]
    return visit.redirect(safe_place(vouched.place), cookies=cookies)


async def _admitted(visit: Visit, vouched: Vouched) -> Entered:
    """A session of whoever was named; the one of before ends."""
    parts, org = visit.dependencies, vouched.connection.org
    user = await parts.sso.sign_in.person(vouched)
    async with acting_in(visit, org, user.id, "sso.sign_in") as tx:
        await parts.sso.sign_in.admit(tx, vouched, user)
    entered = await parts.accounts.sign_in.enter(user, [Method.SSO], visitor_of(visit), device_of(visit), org)
    if visit.signed_in is not None:
        before = visit.signed_in.session
        with suppress(NotFound):
            await parts.sessions.revoke(before.user, before.id)
    return entered


async def _take_turn(visit: Visit) -> None:
    """Refuse who begins too many: each may ask a provider. Raises RateLimited."""
    await take_turn(visit, Budget(f"sso:{network_of(visitor_of(visit).address)}", ATTEMPTS, RATE))


def _name(visit: Visit) -> str:
    return f"{visit.console.cookies.session}-sso"


def _cookie(visit: Visit, value: str, seconds: int) -> Header:
    return set_cookie(_name(visit), value, seconds=seconds, secure=visit.console.cookies.session.startswith("__Host-"))


PAGES: Final = (
    Page("/console/sso", start, who="anybody"),
    Page("/console/sso/callback/<org>", callback, who="anybody"),
)
