"""Pages for signing in: with password and one-time code, passkey, emailed link, single sign-on or invitation."""

from contextlib import suppress
from urllib.parse import urlsplit

from domain.kernel.errors import DomainError, NotFound
from domain.people.model import AuthMethod, LinkPurpose, User
from domain.people.usecases.attempt_limits import DEVICE_COOKIE_LIFETIME, find_counted_network
from domain.people.usecases.invitations import INVITATION_PATH, OpenInvitation
from domain.people.usecases.sessions import LinkService
from domain.people.usecases.sign_in import CompletedSignIn, SecondStepExpired
from domain.sso.usecases.sso_sign_in import SsoSignIn
from entrypoints.console.context import PageContext, Pages
from entrypoints.console.rendering import format_words
from entrypoints.console.security import SIGN_IN_PATH, build_sign_in_url, choose_safe_target
from entrypoints.console.translation import N_, gettext
from entrypoints.http.exchange import Response
from ports.limits import RateLimitBucket

_INVITATION_EXPIRED = N_("This invitation was already used, was revoked or has expired. Ask for a new one.")

pages = Pages(audience="anybody")


def _get_known_accounts_cookie(page: PageContext) -> str:
    """Return the value of the cookie that lists the accounts which have signed in in this browser."""
    return page.request.cookies.get(f"{page.cookies.session_cookie_name}-device", "")[:1000]


async def _start_session(
    page: PageContext, sign_in: CompletedSignIn, target: str, notice: str | None = None
) -> Response:
    """Set the cookie of a new session, redirect to a page, and end the previous session of the browser.

    Args:
        page: The context.
        sign_in: The result of the sign-in, with the new session's cookie.
        target: The URL of the page, which must be trusted or a result of `choose_safe_target`.
        notice: The notice that the page shows, if any.
    """
    if page.signed_in is not None:
        previous_session = page.signed_in.session
        with suppress(NotFound):
            await page.sessions.revoke(previous_session.user, previous_session.id)
    device = page.cookies.build_header(
        f"{page.cookies.session_cookie_name}-device", sign_in.device_cookie, int(DEVICE_COOKIE_LIFETIME.total_seconds())
    )
    cookies = [page.build_session_cookie(sign_in.session_cookie), device, page.cookies.build_session_version_header()]
    return page.redirect(target, notice, cookies=cookies)


@pages.register_get(SIGN_IN_PATH)
async def show_sign_in(page: PageContext) -> Response:
    """Show the sign-in form for email address and password; redirect a person who is already signed in."""
    target = choose_safe_target(page.form["next"] or page.query["next"])
    if page.signed_in is not None and not page.is_post:
        return page.redirect(target)
    return page.render("sign_in/sign_in.html", next=target, email=page.form.get("email"))


@pages.register_post(SIGN_IN_PATH, error_view=show_sign_in)
async def sign_in_by_password(page: PageContext) -> Response:
    """Sign in with email and password; if the account requires a one-time code, show the form for the code."""
    email, password = page.form.get("email"), page.form["password"]
    found = await page.accounts.sign_in.sign_in_with_password(
        email, password, page.client_info, _get_known_accounts_cookie(page)
    )
    if isinstance(found, CompletedSignIn):
        return await _start_session(page, found, choose_safe_target(page.form["next"]))
    return _show_code_form(page, found.token)


def _show_code_form(page: PageContext, token: str) -> Response:
    """Show the form for the one-time code. `token` proves that the password was correct."""
    return page.render("sign_in/code.html", next=choose_safe_target(page.form["next"]), token=token)


@pages.register_post(f"{SIGN_IN_PATH}/code", error_view=show_sign_in)
async def sign_in_by_code(page: PageContext) -> Response:
    """Check the entered one-time code and complete the password sign-in; if the code is rejected, show its form again."""
    token, code = page.form["token"], page.form["code"]
    try:
        found = await page.accounts.sign_in.complete_second_step(
            token, code, page.client_info, _get_known_accounts_cookie(page)
        )
    except SecondStepExpired:
        raise
    except DomainError as error:
        page.refused = page.to_refused(error)
        return _show_code_form(page, token)
    return await _start_session(page, found, choose_safe_target(page.form["next"]))


@pages.register_post(f"{SIGN_IN_PATH}/passkey/options")
async def create_sign_in_options(page: PageContext) -> Response:
    """Return the WebAuthn options with which the browser signs in by a passkey, as JSON."""
    return page.respond_json((await page.accounts.passkeys.begin_sign_in(page.client_info)).options)


@pages.register_post(f"{SIGN_IN_PATH}/passkey", error_view=show_sign_in)
async def sign_in_by_passkey(page: PageContext) -> Response:
    """Sign in with a passkey."""
    form, passkeys = page.form, page.accounts.passkeys
    found = await passkeys.complete_sign_in(
        form["credential"], form["challenge"], page.client_info, _get_known_accounts_cookie(page)
    )
    return await _start_session(page, found, choose_safe_target(form["next"]))


@pages.register_form("/console/link/<secret>")
async def sign_in_by_link(page: PageContext) -> Response:
    """Show the page of a single-use sign-in link; if the page's button is pressed, sign in."""
    # Opening the page does not use up the link, because mail scanners open links.
    secret = page.path_parameters["secret"]
    if page.is_post:
        found = await page.accounts.sign_in.sign_in_with_link(
            secret, page.client_info, _get_known_accounts_cookie(page)
        )
        if found is not None:
            return await _start_session(page, found, choose_safe_target(page.form["next"]))
    is_valid = await page.dependencies[LinkService].find(secret, LinkPurpose.SIGN_IN) is not None
    return page.render("sign_in/link.html", status=200 if is_valid else 410, is_valid=is_valid)


@pages.register_form("/console/forgot")
async def request_password_link(page: PageContext) -> Response:
    """Email a link for setting a new password. The response does not reveal whether the address has an account."""
    if page.must_process:
        await page.accounts.passwords.mail_reset_link(page.form.get("email"), page.client_info)
    email = page.form.get("email") or page.query.get("email")
    return page.render("sign_in/forgot.html", is_sent=page.must_process, email=email)


@pages.register_form("/console/set-password/<secret>")
async def set_password(page: PageContext) -> Response:
    """Show the form for a new password, which an emailed link opens; if it is submitted, set the password."""
    secret, passwords = page.path_parameters["secret"], page.accounts.passwords
    user = await passwords.find_user_by_link(secret)
    if page.must_process and user is not None:
        if await passwords.set_by_link(secret, page.form["password"], page.client_info) is not None:
            return page.redirect(SIGN_IN_PATH, gettext("Password saved. Sign in with your new password."))
        user = None
    return page.render("sign_in/set_password.html", status=None if user else 410, user=user)


def _build_state_cookie_name(page: PageContext) -> str:
    """Return the name of the cookie with the state of a single sign-on that is in progress."""
    return f"{page.cookies.session_cookie_name}-sso"


async def _limit_sso_attempts(page: PageContext) -> None:
    """Count an attempt at single sign-on from the browser's network (`find_counted_network`).

    Raises RateLimited beyond the limit, which is 20 attempts at once, and one more every three seconds.
    """
    await page.take_token(RateLimitBucket(f"sso:{find_counted_network(page.client_info.address)}", 20, 1 / 3))


@pages.register_get("/console/sso")
async def start_sso(page: PageContext) -> Response:
    """Show the form for the email address; if the query contains the address, show a page that links to the provider."""
    # The page is needed because the Content-Security-Policy blocks forms that redirect to other sites.
    email, target = page.query.get("email")[:254], choose_safe_target(page.query["next"])
    if not email:
        return page.render("sso/start.html", next=target)
    await _limit_sso_attempts(page)
    attempt = await page.dependencies[SsoSignIn].begin(
        email, target, requires_reauthentication=page.signed_in is not None
    )
    response = page.render("sso/redirect.html", url=attempt.url, host=urlsplit(attempt.url).netloc, email=email)
    response.headers.append(
        page.cookies.build_header(_build_state_cookie_name(page), attempt.cookie, attempt.cookie_lifetime_seconds)
    )
    if page.request.headers.get("sec-fetch-site") == "same-origin":
        # Links from other sites don't redirect automatically, so that the person sees which account signs in.
        response.headers.append((b"refresh", f"0;url={attempt.url}".encode("ascii", "ignore")))
    return response


@pages.register_get("/console/sso/callback/<org>")
async def complete_sso(page: PageContext) -> Response:
    """Validate the response of the identity provider, and sign in the person."""
    await _limit_sso_attempts(page)
    provider_response = {name: page.query[name] for name in ("code", "state", "iss", "error") if name in page.query}
    state = page.request.cookies.get(_build_state_cookie_name(page), "")
    identity = await page.dependencies[SsoSignIn].verify_response(page.path_parameters["org"], state, provider_response)
    org, user = identity.connection.org, await page.dependencies[SsoSignIn].find_or_create_user(identity)
    async with page.open_transaction_as(org, user.id, "sso.sign_in") as tx:
        await page.dependencies[SsoSignIn].link_identity(tx, identity, user)
    sign_in = await page.accounts.sign_in.start_session(
        user, [AuthMethod.SSO], page.client_info, _get_known_accounts_cookie(page), org
    )
    response = await _start_session(page, sign_in, choose_safe_target(identity.next_page))
    response.headers.append(page.cookies.build_header(_build_state_cookie_name(page), "", 0))
    return response


@pages.register_form(f"{INVITATION_PATH}<secret>")
async def accept_invitation(page: PageContext) -> Response:
    """Show an invitation; if its form is submitted, accept it with the person's account or a new one."""
    secret = page.path_parameters["secret"]
    if (open_invitation := await page.console.invitations.find_open(secret)) is None:
        raise (page.refused or NotFound(gettext(_INVITATION_EXPIRED)))
    if page.must_process:
        return await _accept_invitation(page, open_invitation)
    user, invitation = page.signed_in.user if page.signed_in else None, open_invitation.details.invitation
    path = f"{INVITATION_PATH}{secret}"
    return page.render(
        "invitations/invitation.html",
        open_invitation=open_invitation,
        invitation=invitation,
        user=user,
        is_recipient=user is not None and user.email_key == invitation.email_key,
        path=path,
        sign_in_url=build_sign_in_url(path),
        form=page.form,
    )


async def _accept_invitation(page: PageContext, open_invitation: OpenInvitation) -> Response:
    """Add the signed-in person to the organisation; if nobody is signed in, create an account and sign in."""
    details, organisation = open_invitation.details.invitation, open_invitation.details.organisation
    welcome = gettext(
        "Welcome to %(organisation)s. Your role: %(role)s.",
        organisation=organisation.name,
        role=format_words(details.role),
    )
    if page.signed_in is not None:
        await _add_member(page, open_invitation, page.person.user)
        await page.sessions.switch_view(page.person.session, organisation.id, livemode=True)
        return page.redirect("/console", welcome, cookies=[page.cookies.build_session_version_header()])
    user = await page.console.invitations.build_new_user(details, page.form["name"])
    await page.accounts.passwords.create_account(user, page.form["password"])
    user = await _add_member(page, open_invitation, user)
    methods = (AuthMethod.PASSWORD,)
    sign_in = await page.accounts.sign_in.start_session(
        user, methods, page.client_info, _get_known_accounts_cookie(page), organisation.id
    )
    return await _start_session(page, sign_in, "/console", welcome)


async def _add_member(page: PageContext, open_invitation: OpenInvitation, user: User) -> User:
    """Add a user to the organisation of an invitation; return the user, whose email address is now verified."""
    invitation, invitations = open_invitation.details.invitation, page.console.invitations
    async with page.open_transaction_as(invitation.org, user.id, "invitations.accept") as tx:
        await invitations.accept(tx, user, invitation)
    return await invitations.mark_verified(user)
