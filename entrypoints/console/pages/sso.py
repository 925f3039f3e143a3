"""Coming in by an organisation's own identity provider: the browser sent there, and what it brings back."""

from typing import Final
from urllib.parse import urlsplit

from domain.kernel.errors import RateLimited
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from domain.people.model import Method, SecurityEvent
from domain.people.usecases.sessions import Visitor
from domain.sso.usecases.signing_in import Answered
from entrypoints.console.cookies import Header, set_cookie
from entrypoints.console.page import Answer, Page
from entrypoints.console.places import safe_place
from entrypoints.console.visit import Visit
from entrypoints.http.addresses import Proxies
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
    begun = await visit.dependencies.sso.sign_in.begin(email, place)
    answer = visit.render("sso/leaving.html", url=begun.url, host=urlsplit(begun.url).netloc, email=email)
    answer.headers.append(_cookie(visit, begun.cookie, begun.seconds))
    answer.headers.append((b"refresh", f"0;url={begun.url}".encode("ascii", "ignore")))
    return answer


async def callback(visit: Visit) -> Answer:
    """What the provider sends the browser back with; whoever it names is signed in."""
    await _take_turn(visit)
    parts = visit.dependencies
    answer = {name: visit.query[name] for name in _ANSWER if name in visit.query}
    cookie = visit.asked.cookies.get(_name(visit), "")
    answered = await parts.sso.sign_in.answered(visit.ids["org"], cookie, answer)
    secret, seconds = await _admitted(visit, answered)
    cookies = [visit.console.cookies.signed_in(secret, seconds), _cookie(visit, "", 0)]
    return visit.redirect(safe_place(answered.place), cookies=cookies)


async def _admitted(visit: Visit, answered: Answered) -> tuple[str, int]:
    """A session of whoever was named: its cookie, and for how many seconds. The one of before ends."""
    parts, org = visit.dependencies, answered.connection.org
    user = await parts.sso.sign_in.person(answered)
    context = AuditContext(Actor("user", user.id), "sso.sign_in", visit.request_id)
    async with parts.uow.begin(Tenant(org, True), context) as tx:
        await parts.sso.sign_in.admit(tx, answered, user)
    visitor = Visitor(_client(visit), visit.asked.headers.get("user-agent", ""))
    session, secret = await parts.sessions.begin(user, [Method.SSO], visitor, org)
    now = session.created_at
    event = SecurityEvent(
        new_id("sec"), user.id, "signed_in", "single sign-on", visitor.address, session.user_agent, now
    )
    await parts.people.note(event)
    if visit.signed_in is not None:
        before = visit.signed_in.session
        if before.user == user.id:
            await parts.sessions.revoke(user.id, before.id)
    return secret, int((session.expires_at - now).total_seconds())


async def _take_turn(visit: Visit) -> None:
    """Refuse who begins too many: each may ask a provider. Raises RateLimited."""
    taken = await visit.dependencies.limits.take(Budget(f"sso:{_client(visit)}", ATTEMPTS, RATE))
    if not taken.allowed:
        raise RateLimited(retry_after=max(1, int(taken.next_in) + 1))


def _client(visit: Visit) -> str:
    proxies = Proxies(visit.dependencies.settings.trusted_proxies)
    return proxies.client(visit.asked.client, visit.asked.headers)


def _name(visit: Visit) -> str:
    return f"{visit.console.cookies.session}-sso"


def _cookie(visit: Visit, value: str, seconds: int) -> Header:
    return set_cookie(_name(visit), value, seconds=seconds, secure=visit.console.cookies.session.startswith("__Host-"))


PAGES: Final = (
    Page("/console/sso", start, who="anybody"),
    Page("/console/sso/callback/<org>", callback, who="anybody"),
)
