"""Pages where a person grants an OAuth app access, also for a device that shows a code."""

from dataclasses import replace
from urllib.parse import urlsplit

from domain.kernel.errors import InvalidRequest
from domain.kernel.tenancy import Tenant
from domain.oauth import redirects
from domain.oauth.asking import Call, Known, Wish
from domain.oauth.errors import OAuthError
from domain.oauth.model import App, Device
from domain.orgs.model import Organisation
from domain.orgs.ports import OrgStore
from domain.people.usecases.throttling import network_of
from entrypoints.console.context import PageContext, Pages, Refused
from entrypoints.console.security import sign_in_target
from entrypoints.console.translation import gettext
from entrypoints.http.exchange import Response
from entrypoints.oauth import pairs_of
from entrypoints.operations.scopes import permissions
from ports.clock import Clock
from ports.unit_of_work import UnitOfWork

AUTHORIZE = "/oauth/authorize"
DEVICE = "/oauth/device"
_LONGEST = 8000
_OPERATION = "oauth.consent"

pages = Pages(who="person")


@pages.get(AUTHORIZE, who="anybody")
async def authorize(page: PageContext) -> Response:
    """Show the permissions that an app requests; redirect at once if the person granted them before."""
    consent, call = page.console.oauth.consent, _call(page.request.query)
    wish, known = await _wish(page, call)
    if isinstance(wish, str):
        return _leave(page, wish)
    quiet = "none" in wish.prompt
    if page.signed_in is None:
        if quiet:
            return _leave(page, consent.deny(call, known, "login_required"))
        return page.redirect(sign_in_target(page.request.target))
    if not (orgs := await page.sessions.open_to(page.person.session)):
        return page.render("errors/no_organisation.html", status=403)
    own = next((org for org in orgs if org.id == page.person.session.org), orgs[0])
    if quiet or len(orgs) == 1:
        target = await _agreed_before(page, call, wish, known, own)
        if target is not None:
            return _leave(page, target)
    if quiet:
        return _leave(page, consent.deny(call, known, "interaction_required"))
    return page.render(
        "oauth/consent.html",
        targets=[_origin(wish.redirect_uri)],
        app=wish.app,
        host=redirects.host_of(wish.redirect_uri),
        maker=await _maker(page, wish.app),
        orgs=orgs,
        chosen=own.id,
        permissions=permissions(wish.scopes),
        request=page.request.query,
    )


@pages.post(AUTHORIZE, who="anybody", most=64 * 1024)
async def decide(page: PageContext) -> Response:
    """Carry out the person's decision. The app's request is validated again, as a form can contain anything."""
    consent, query = page.console.oauth.consent, page.form["request"]
    call = _call(query)
    wish, known = await _wish(page, call)
    if isinstance(wish, str):
        return _leave(page, wish)
    if page.signed_in is None:
        return page.redirect(sign_in_target(f"{AUTHORIZE}?{query}"))
    if page.form["decision"] != "allow":
        return _leave(page, consent.deny(call, known))
    org, user = await _chosen(page), page.person.user.id
    async with page.transaction_of(org.id, user, _OPERATION) as tx:
        agreed = await consent.agree(tx, call, known, user)
    return _leave(page, await consent.keep(agreed))


async def _agreed_before(page: PageContext, call: Call, wish: Wish, known: Known, org: Organisation) -> str | None:
    """Return the redirect target if the person granted the request in this organisation before; None if consent is needed."""
    consent, user = page.console.oauth.consent, page.person.user.id
    async with page.transaction_of(org.id, user, _OPERATION) as tx:
        if not await consent.agreed_before(tx, wish, user):
            return None
        agreed = await consent.agree(tx, call, known, user)
    return await consent.keep(agreed)


@pages.get(DEVICE)
async def show_device(page: PageContext) -> Response:
    """Show the form for a device's code; with a valid code, show the requested permissions."""
    typed = page.query.get("user_code")
    found = await _device(page, typed) if typed else None
    if found is None:
        return page.render("oauth/device.html", wrong=bool(typed))
    if not (orgs := await page.sessions.open_to(page.person.session)):
        return page.render("errors/no_organisation.html", status=403)
    wanted, app = found
    return page.render(
        "oauth/device_consent.html",
        app=app,
        maker=await _maker(page, app),
        typed=typed[:20].upper(),
        orgs=orgs,
        chosen=page.person.session.org,
        permissions=permissions(wanted.scopes),
    )


@pages.post(f"{DEVICE}/decision")
async def decide_device(page: PageContext) -> Response:
    """Carry out the person's decision on a device."""
    approved, consent = page.form["decision"] == "allow", page.console.oauth.consent
    if found := await _device(page, page.form["user_code"]):
        org, user, decision = await _chosen(page), page.person.user.id, replace(found[0], approved=False)
        if approved:
            async with page.transaction_of(org.id, user, _OPERATION) as tx:
                decision = await consent.agree_to_device(tx, found, user)
        if await consent.decide(decision):
            return page.render("oauth/device_done.html", app=found[1], approved=approved, org=org)
    return page.render("oauth/device.html", wrong=True)


def _call(query: str) -> Call:
    if len(query) > _LONGEST:
        raise InvalidRequest(gettext("The app's request is too long."))
    try:
        return Call(pairs_of(query), method="GET")
    except OAuthError as error:
        raise _refused(error) from None


async def _wish(page: PageContext, call: Call) -> tuple[Wish | str, Known]:
    """Return the app's request, or the redirect target for a refusal. Raises Refused if no redirect URI was validated."""
    try:
        return await page.console.oauth.consent.wish(call, network_of(page.visitor.address))
    except OAuthError as error:
        if error.location is not None:
            return error.location, Known(page.dependencies[Clock].now())
        raise _refused(error) from None


async def _device(page: PageContext, typed: str) -> tuple[Device, App] | None:
    try:
        return await page.console.oauth.consent.device(typed, page.person.user.id, network_of(page.visitor.address))
    except OAuthError as error:
        raise _refused(error) from None


def _refused(error: OAuthError) -> Refused:
    """Return the refusal for the page, used when no redirect URI was validated."""
    if error.status == 429:
        problem = {
            "status": 429,
            "title": gettext("Too many requests"),
            "detail": gettext("Wait a moment, then try again."),
        }
        return Refused(problem, str(error.retry_after))
    detail = gettext(
        "The app sent an invalid request, so nothing was shared with it. Details for its developer: %(code)s. %(reason)s",
        code=error.code,
        reason=error.description,
    )
    return Refused({"status": 400, "title": gettext("Invalid app request"), "detail": detail})


def _leave(page: PageContext, target: str) -> Response:
    """Redirect to the app, without a referrer that could expose the authorization code."""
    response = page.redirect(target)
    response.headers = [(name, value) for name, value in response.headers if name != b"referrer-policy"]
    response.headers.append((b"referrer-policy", b"no-referrer"))
    return response


async def _chosen(page: PageContext) -> Organisation:
    """Return the organisation selected in the form. Raises InvalidRequest if the person has no access to it."""
    org = next(
        (one for one in await page.sessions.open_to(page.person.session) if one.id == page.form["org"]),
        None,
    )
    if org is None:
        raise InvalidRequest(gettext("Select one of your organisations."))
    await page.sessions.let_in(page.person.session, org.id)
    return org


async def _maker(page: PageContext, app: App) -> str:
    """Return the name of the organisation that owns the app; empty if there is none."""
    if app.org is None:
        return ""
    async with page.dependencies[UnitOfWork].read(Tenant(app.org, True)) as tx:
        return (await tx[OrgStore].own()).name


def _origin(uri: str) -> str:
    """Return the form target for the page's Content-Security-Policy: an origin, or a scheme for custom schemes."""
    parts = urlsplit(uri)
    web = parts.netloc and parts.scheme in ("http", "https")
    return f"{parts.scheme}://{parts.netloc}" if web else f"{parts.scheme}:"
