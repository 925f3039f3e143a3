"""A person is asked by an app: what it may do, where, and who it is; and by a device that shows a code."""

from dataclasses import replace
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from domain.kernel.errors import InvalidRequest, RateLimited
from domain.kernel.tenancy import Tenant
from domain.oauth import redirects
from domain.oauth.asking import Call, Known, Wish
from domain.oauth.errors import OAuthError
from domain.oauth.model import App, Device
from domain.orgs.model import Organisation
from domain.orgs.ports import OrgStore
from domain.people.usecases.throttling import network_of
from entrypoints.console.acting import acting_in
from entrypoints.console.page import Answer, Page
from entrypoints.console.places import sign_in_place
from entrypoints.console.refusals import Refused
from entrypoints.console.visit import Visit
from entrypoints.http.addresses import Proxies
from entrypoints.oauth.endpoints import pairs_of
from entrypoints.operations.scopes import permissions

AUTHORIZE: Final = "/oauth/authorize"
DEVICE: Final = "/oauth/device"
_LONGEST: Final = 8000
_OPERATION: Final = "oauth.consent"


async def authorize(visit: Visit) -> Answer:
    """What an app asks for; whoever agreed to all of it before is led back at once."""
    call = _call(visit.asked.query)
    wish, known = await _wish(visit, call)
    if isinstance(wish, str):
        return _leave(visit, wish)
    quiet = "none" in wish.prompt
    if visit.signed_in is None:
        if quiet:
            return _leave(visit, visit.console.oauth.consent.deny(call, known, "login_required"))
        return visit.redirect(sign_in_place(visit.asked.place))
    orgs = await _organisations(visit)
    if not orgs:
        return visit.render("errors/no_organisation.html", status=403)
    own = next((org for org in orgs if org.id == visit.person.session.org), orgs[0])
    if quiet or len(orgs) == 1:
        place = await _agreed_before(visit, call, wish, known, own)
        if place is not None:
            return _leave(visit, place)
    if quiet:
        return _leave(visit, visit.console.oauth.consent.deny(call, known, "interaction_required"))
    return await _asked(visit, wish, orgs, own)


async def answer(visit: Visit) -> Answer:
    """The person's word. What the app asked for is vetted anew: a form may say anything."""
    call = _call(visit.form["request"])
    wish, known = await _wish(visit, call)
    if isinstance(wish, str):
        return _leave(visit, wish)
    if visit.signed_in is None:
        return visit.redirect(sign_in_place(f"{AUTHORIZE}?{visit.form['request']}"))
    services = visit.console.oauth
    if visit.form["decision"] != "allow":
        return _leave(visit, services.consent.deny(call, known))
    org = await _chosen(visit)
    async with acting_in(visit, org.id, visit.person.user.id, _OPERATION) as tx:
        agreed = await services.consent.agree(tx, call, known, visit.person.user.id)
    return _leave(visit, await services.consent.keep(agreed))


async def device(visit: Visit) -> Answer:
    """Where a person types the code that a device shows; with the code, what that device wants."""
    typed = visit.query.get("user_code")
    if not typed:
        return visit.render("oauth/device.html", typed="", wrong=False)
    found = await _found(visit, typed)
    if found is None:
        return visit.render("oauth/device.html", typed="", wrong=True)
    orgs = await _organisations(visit)
    if not orgs:
        return visit.render("errors/no_organisation.html", status=403)
    wanted, app = found
    maker = await _maker(visit, app)
    return visit.render(
        "oauth/device_consent.html", app=app, maker=maker, typed=typed[:20].upper(), orgs=orgs,
        chosen=visit.person.session.org, permissions=permissions(wanted.scopes),
    )  # fmt: skip


async def decide_device(visit: Visit) -> Answer:
    """The person's word on a device."""
    approved = visit.form["decision"] == "allow"
    found = await _found(visit, visit.form["user_code"])
    if found is None:
        return visit.render("oauth/device.html", typed="", wrong=True)
    org, services, word = await _chosen(visit), visit.console.oauth, replace(found[0], approved=False)
    if approved:
        async with acting_in(visit, org.id, visit.person.user.id, _OPERATION) as tx:
            word = await services.consent.agree_to_device(tx, found, visit.person.user.id)
    done = await services.consent.decide(word)
    if not done:
        return visit.render("oauth/device.html", typed="", wrong=True)
    return visit.render("oauth/device_done.html", app=found[1], approved=approved, org=org)


async def _agreed_before(visit: Visit, call: Call, wish: Wish, known: Known, org: Organisation) -> str | None:
    """Where the browser goes when the person agreed to all of it before, there; None when they must be asked."""
    consent, user = visit.console.oauth.consent, visit.person.user.id
    async with acting_in(visit, org.id, visit.person.user.id, _OPERATION) as tx:
        if not await consent.agreed_before(tx, wish, user):
            return None
        agreed = await consent.agree(tx, call, known, user)
    return await consent.keep(agreed)


async def _asked(visit: Visit, wish: Wish, orgs: list[Organisation], own: Organisation) -> Answer:
    return visit.render(
        "oauth/consent.html",
        targets=[_origin(wish.redirect_uri)],
        app=wish.app,
        host=redirects.host_of(wish.redirect_uri),
        maker=await _maker(visit, wish.app),
        orgs=orgs,
        chosen=own.id,
        permissions=permissions(wish.scopes),
        request=visit.asked.query,
    )


async def _wish(visit: Visit, call: Call) -> tuple[Wish | str, Known]:
    """What is asked for, or where the browser is sent with the refusal. Raises Refused where no address was vetted."""
    try:
        return await visit.console.oauth.consent.wish(call, _address(visit))
    except OAuthError as error:
        if error.location is not None:
            return error.location, Known(visit.dependencies.clock.now())
        raise _refused(error) from None


def _refused(error: OAuthError) -> Refused:
    """Told to the person, not to an address that nobody vetted."""
    if error.status == 429:
        return Refused(
            {
                "status": 429,
                "code": RateLimited.code,
                "title": "Too many requests",
                "detail": "Wait a moment, then try again.",
            },
            str(error.retry_after),
        )
    detail = (
        "The app that sent you here asked for something that cannot be. Nothing was shared with it. "
        f"Its developer may want to know: {error.code}. {error.description}"
    )
    return Refused({"status": 400, "code": error.code, "title": "This app cannot be signed in to", "detail": detail})


def _leave(visit: Visit, place: str) -> Answer:
    """On to the app. No page that the code passes tells another about it."""
    made = visit.redirect(place)
    made.headers = [(name, value) for name, value in made.headers if name != b"referrer-policy"]
    made.headers.append((b"referrer-policy", b"no-referrer"))
    return made


def _call(query: str) -> Call:
    if len(query) > _LONGEST:
        raise InvalidRequest("The app's request is too long.")
    try:
        return Call(pairs_of(query), method="GET")
    except OAuthError as error:
        raise _refused(error) from None


async def _found(visit: Visit, typed: str) -> tuple[Device, App] | None:
    try:
        return await visit.console.oauth.consent.device(typed, visit.person.user.id, _address(visit))
    except OAuthError as error:
        raise _refused(error) from None


async def _organisations(visit: Visit) -> list[Organisation]:
    """Those that the session may look at: an app sees no more than whoever signs in to it."""
    return await visit.dependencies.sessions.open_to(visit.person.session)


async def _chosen(visit: Visit) -> Organisation:
    """The organisation that the form names. Raises InvalidRequest for one that the person is not let in to."""
    found = [org for org in await _organisations(visit) if org.id == visit.form["org"]]
    if not found:
        raise InvalidRequest("Choose one of your organisations.")
    await visit.dependencies.sessions.let_in(visit.person.session, found[0].id)
    return found[0]


async def _maker(visit: Visit, app: App) -> str:
    """The name of the organisation that made the app; empty when none here did."""
    if app.org is None:
        return ""
    async with visit.dependencies.uow.read(Tenant(app.org, True)) as tx:
        return (await tx[OrgStore].own()).name


def _address(visit: Visit) -> str:
    asked = visit.asked
    return network_of(_proxies(visit.dependencies.settings.trusted_proxies).client(asked.client, asked.headers))


@lru_cache(maxsize=4)
def _proxies(trusted: frozenset[str]) -> Proxies:
    return Proxies(trusted)


def _origin(uri: str) -> str:
    """What the page's policy lets the form lead to: an origin, or a scheme."""
    parts = urlsplit(uri)
    return (
        f"{parts.scheme}://{parts.netloc}" if parts.netloc and parts.scheme in ("http", "https") else f"{parts.scheme}:"
    )


PAGES: Final = (
    Page(AUTHORIZE, authorize, who="anybody"),
    Page(AUTHORIZE, answer, methods=("POST",), who="anybody", most=64 * 1024),
    Page(DEVICE, device, who="person"),
    Page(f"{DEVICE}/decision", decide_device, methods=("POST",), who="person"),
)
