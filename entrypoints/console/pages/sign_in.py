"""Pages for signing in with a password and code, a passkey, a link, single sign-on or an invitation."""

from contextlib import suppress
from urllib.parse import urlsplit

from domain.kernel.errors import DomainError, NotFound
from domain.people.model import Method, Purpose, User
from domain.people.usecases.invitations import PAGE, Offer
from domain.people.usecases.sessions import LinkService
from domain.people.usecases.signing_in import Entered, StepOver
from domain.people.usecases.throttling import DEVICE_LASTS, network_of
from domain.sso.usecases.signing_in import SsoSignIn
from entrypoints.console.context import PageContext, Pages
from entrypoints.console.rendering import words
from entrypoints.console.security import SIGN_IN, safe_target, sign_in_target
from entrypoints.console.translation import N_, gettext
from entrypoints.http.exchange import Response
from ports.limits import Budget

_EXPIRED = N_("This invitation was already used, was revoked or has expired. Ask for a new one.")

pages = Pages(who="anybody")


def _device(page: PageContext) -> str:
    """Return the cookie that lists the accounts which signed in on this browser before."""
    return page.request.cookies.get(f"{page.cookies.session}-device", "")[:1000]


async def _enter(page: PageContext, entered: Entered, target: str, notice: str | None = None) -> Response:
    """Redirect with the new session, and end the previous session of this browser."""
    if page.signed_in is not None:
        before = page.signed_in.session
        with suppress(NotFound):
            await page.sessions.revoke(before.user, before.id)
    device = page.cookies.set(f"{page.cookies.session}-device", entered.device, int(DEVICE_LASTS.total_seconds()))
    cookies = [page.session_cookie(entered.cookie), device, page.cookies.view()]
    return page.redirect(target, notice, cookies=cookies)


@pages.get(SIGN_IN)
async def show_sign_in(page: PageContext) -> Response:
    """Show the form for email and password."""
    target = safe_target(page.form["next"] or page.query["next"])
    if page.signed_in is not None and not page.sent:
        return page.redirect(target)
    return page.render("sign_in/sign_in.html", next=target, email=page.form.get("email"))


@pages.post(SIGN_IN, again=show_sign_in)
async def sign_in_by_password(page: PageContext) -> Response:
    """Sign in, or show the form for the one-time code."""
    email, password = page.form.get("email"), page.form["password"]
    found = await page.accounts.sign_in.by_password(email, password, page.visitor, _device(page))
    if isinstance(found, Entered):
        return await _enter(page, found, safe_target(page.form["next"]))
    return _show_code(page, found.token)


def _show_code(page: PageContext, token: str) -> Response:
    return page.render("sign_in/code.html", next=safe_target(page.form["next"]), token=token)


@pages.post(f"{SIGN_IN}/code", again=show_sign_in)
async def sign_in_by_code(page: PageContext) -> Response:
    """Sign in with the one-time code."""
    token, code = page.form["token"], page.form["code"]
    try:
        found = await page.accounts.sign_in.by_code(token, code, page.visitor, _device(page))
    except StepOver:
        raise
    except DomainError as error:
        page.refused = page.refusal(error)
        return _show_code(page, token)
    return await _enter(page, found, safe_target(page.form["next"]))


@pages.post(f"{SIGN_IN}/passkey/options")
async def passkey_options(page: PageContext) -> Response:
    """Return the options for signing in with a passkey."""
    return page.json((await page.accounts.passkeys.sign_in(page.visitor)).options)


@pages.post(f"{SIGN_IN}/passkey", again=show_sign_in)
async def sign_in_by_passkey(page: PageContext) -> Response:
    """Sign in the owner of the passkey."""
    form, passkeys = page.form, page.accounts.passkeys
    found = await passkeys.signed_in(form["answer"], form["challenge"], page.visitor, _device(page))
    return await _enter(page, found, safe_target(form["next"]))


@pages.form("/console/link/<secret>")
async def sign_in_by_link(page: PageContext) -> Response:
    """Sign in with a single-use link. Only the button uses the link up, as mail scanners open links."""
    secret = page.ids["secret"]
    if page.sent:
        found = await page.accounts.sign_in.by_link(secret, page.visitor, _device(page))
        if found is not None:
            return await _enter(page, found, safe_target(page.form["next"]))
    holds = await page.dependencies[LinkService].look(secret, Purpose.SIGN_IN) is not None
    return page.render("sign_in/link.html", status=200 if holds else 410, holds=holds)


@pages.form("/console/forgot")
async def ask_for_link(page: PageContext) -> Response:
    """Send a link for setting a new password; the response is the same for unknown addresses."""
    if page.submitted:
        await page.accounts.passwords.forgot(page.form.get("email"), page.visitor)
    email = page.form.get("email") or page.query.get("email")
    return page.render("sign_in/forgot.html", sent=page.submitted, email=email)


@pages.form("/console/set-password/<secret>")
async def set_password(page: PageContext) -> Response:
    """Set a password with an emailed link."""
    secret, passwords = page.ids["secret"], page.accounts.passwords
    user = await passwords.of_link(secret)
    if page.submitted and user is not None:
        if await passwords.set_by_link(secret, page.form["password"], page.visitor) is not None:
            return page.redirect(SIGN_IN, gettext("Password saved. Sign in with your new password."))
        user = None
    return page.render("sign_in/set_password.html", status=None if user else 410, user=user)


def _state(page: PageContext) -> str:
    """Return the name of the cookie with the state of a single sign-on attempt."""
    return f"{page.cookies.session}-sso"


async def _take_sso_turn(page: PageContext) -> None:
    """Limit a network to a burst of 20 sign-on attempts, then one every three seconds. Raises RateLimited."""
    await page.take_turn(Budget(f"sso:{network_of(page.visitor.address)}", 20, 1 / 3))


@pages.get("/console/sso")
async def begin_sso(page: PageContext) -> Response:
    """Show the form for the email, or a page that leads to the identity provider.

    The page between is needed as the policy blocks forms that lead to other sites, and it shows the target.
    """
    email, target = page.query.get("email")[:254], safe_target(page.query["next"])
    if not email:
        return page.render("sso/start.html", place=target)
    await _take_sso_turn(page)
    begun = await page.dependencies[SsoSignIn].begin(email, target, again=page.signed_in is not None)
    response = page.render("sso/leaving.html", url=begun.url, host=urlsplit(begun.url).netloc, email=email)
    response.headers.append(page.cookies.set(_state(page), begun.cookie, begun.seconds))
    if page.request.headers.get("sec-fetch-site") == "same-origin":
        # Links from other sites don't redirect automatically, so that the person sees which account signs in.
        response.headers.append((b"refresh", f"0;url={begun.url}".encode("ascii", "ignore")))
    return response


@pages.get("/console/sso/callback/<org>")
async def end_sso(page: PageContext) -> Response:
    """Validate the provider's response, and sign in the person."""
    await _take_sso_turn(page)
    answer = {name: page.query[name] for name in ("code", "state", "iss", "error") if name in page.query}
    state = page.request.cookies.get(_state(page), "")
    vouched = await page.dependencies[SsoSignIn].answered(page.ids["org"], state, answer)
    org, user = vouched.connection.org, await page.dependencies[SsoSignIn].person(vouched)
    async with page.transaction_of(org, user.id, "sso.sign_in") as tx:
        await page.dependencies[SsoSignIn].admit(tx, vouched, user)
    entered = await page.accounts.sign_in.enter(user, [Method.SSO], page.visitor, _device(page), org)
    response = await _enter(page, entered, safe_target(vouched.place))
    response.headers.append(page.cookies.set(_state(page), "", 0))
    return response


@pages.form(f"{PAGE}<secret>")
async def show_invitation(page: PageContext) -> Response:
    """Show an invitation, and accept it with the current or a new account."""
    secret = page.ids["secret"]
    if (offer := await page.console.invitations.look(secret)) is None:
        raise (page.refused or NotFound(gettext(_EXPIRED)))
    if page.submitted:
        return await _accept(page, offer)
    me, place, wanted = page.signed_in.user if page.signed_in else None, f"{PAGE}{secret}", offer.invited.invitation
    return page.render(
        "invitations/one.html",
        offer=offer,
        wanted=wanted,
        me=me,
        fits=me is not None and me.email_key == wanted.email_key,
        place=place,
        sign_in=sign_in_target(place),
        form=page.form,
    )


async def _accept(page: PageContext, offer: Offer) -> Response:
    """Add the signed-in person as a member; otherwise create an account first, and sign in."""
    wanted, organisation = offer.invited.invitation, offer.invited.organisation
    welcome = gettext(
        "Welcome to %(organisation)s. Your role: %(role)s.", organisation=organisation.name, role=words(wanted.role)
    )
    if page.signed_in is not None:
        await _join(page, offer, page.person.user)
        await page.sessions.look_at(page.person.session, organisation.id, livemode=True)
        return page.redirect("/console", welcome, cookies=[page.cookies.view()])
    user = await page.console.invitations.newcomer(wanted, page.form["name"])
    await page.accounts.passwords.set_up(user, page.form["password"])
    user = await _join(page, offer, user)
    methods = (Method.PASSWORD,)
    entered = await page.accounts.sign_in.enter(user, methods, page.visitor, _device(page), organisation.id)
    return await _enter(page, entered, "/console", welcome)


async def _join(page: PageContext, offer: Offer, user: User) -> User:
    wanted, invitations = offer.invited.invitation, page.console.invitations
    async with page.transaction_of(wanted.org, user.id, "invitations.accept") as tx:
        await invitations.accept(tx, user, wanted)
    return await invitations.verified(user)
