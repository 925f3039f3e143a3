"""Pages of the person's account: profile, sign-in methods, sessions, and the session's organisation and mode."""

from dataclasses import replace

from domain.kernel.names import validate_name
from domain.kernel.paging import PageRequest
from domain.orgs.ports import Memberships
from entrypoints.console.context import PageContext, Pages, require_recent_confirmation
from entrypoints.console.rendering import format_number
from entrypoints.console.security import SIGN_IN_PATH, THEME_COOKIE, choose_safe_target
from entrypoints.console.translation import LANGUAGES, choose_language, gettext, ngettext, use_language
from entrypoints.http.exchange import Response

ACCOUNT_PATH = "/console/account"
PASSWORD_PATH = f"{ACCOUNT_PATH}/password"
CODES_PATH = f"{ACCOUNT_PATH}/codes"
PASSKEYS_PATH = f"{ACCOUNT_PATH}/passkeys"
_YEAR_SECONDS = 365 * 86400

pages = Pages("/console", audience="person")


@pages.register_get("/account")
async def show_account(page: PageContext) -> Response:
    """Show the person's account with sign-in methods, sessions and security events."""
    user, accounts = page.person.user.id, page.accounts
    return page.render(
        "account/account.html",
        languages=[
            ("", gettext("Browser language")),
            *((code, locale.language_name) for code, locale in LANGUAGES.items()),
        ],
        has_password=await accounts.passwords.has_password(user),
        asks_for_code=await accounts.factors.has_authenticator(user),
        codes_left=await accounts.factors.count_unused_codes(user),
        passkeys=await accounts.passkeys.list_by_user(user),
        sessions=await page.sessions.list_active(user),
        events=await page.people.list_events(user, 30),
    )


@pages.register_post("/account/profile")
async def change_profile(page: PageContext) -> Response:
    """Change the person's name and language."""
    name = validate_name(page.form["name"]) if page.form["name"].strip() else ""
    language = page.form["language"] if page.form["language"] in LANGUAGES else None
    await page.people.save(replace(page.person.user, name=name, language=language))
    use_language(choose_language(page.request.headers.get("accept-language", ""), language))
    return page.redirect(ACCOUNT_PATH, gettext("Profile saved"), cookies=[page.cookies.build_session_version_header()])


@pages.register_post("/account/sessions/end-others")
async def end_other_sessions(page: PageContext) -> Response:
    """End all sessions of the person except the current one."""
    user = page.person.user
    ended = await page.sessions.revoke_all(user.id, kept_session=page.person.session.id)
    await page.accounts.notices.notify(user, "sessions_ended", page.client_info)
    notice = ngettext(
        "%(count)s other session ended", "%(count)s other sessions ended", ended, count=format_number(ended)
    )
    return page.redirect(ACCOUNT_PATH, notice)


@pages.register_post("/account/sessions/<session>/end")
async def end_session(page: PageContext) -> Response:
    """End one of the person's other sessions."""
    user = page.person.user
    await page.sessions.revoke(user.id, page.path_parameters["session"])
    await page.accounts.notices.notify(user, "session_ended", page.client_info)
    return page.redirect(ACCOUNT_PATH, gettext("Session ended"))


@pages.register_form("/account/password")
@require_recent_confirmation(PASSWORD_PATH, excludes_sso=True)
async def change_password(page: PageContext) -> Response:
    """Show the form for a new password; if it is submitted, set the password."""
    user, passwords = page.person.user, page.accounts.passwords
    if page.must_process:
        await passwords.change(user, page.form["password"], page.person.session, page.client_info)
        return page.redirect(ACCOUNT_PATH, gettext("Password saved. Your other sessions have ended."))
    return page.render("account/password.html", has_password=await passwords.has_password(user.id))


@pages.register_form("/account/codes")
@require_recent_confirmation(CODES_PATH, excludes_sso=True)
async def turn_on_one_time_codes(page: PageContext) -> Response:
    """Show the secret for an authenticator app; if a valid code is submitted, turn on one-time codes."""
    user, factors = page.person.user, page.accounts.factors
    if page.must_process:
        recovery_codes = await factors.confirm(user, page.form["code"], page.client_info)
        return page.render("account/recovery_codes.html", codes=recovery_codes, is_first=True)
    if await factors.has_authenticator(user.id):
        return page.render("account/codes_on.html", codes_left=await factors.count_unused_codes(user.id))
    enrolment = await factors.get_pending_enrolment(user) or await factors.enrol(user)
    return page.render("account/codes.html", enrolment=enrolment)


@pages.register_post("/account/codes/off")
@require_recent_confirmation(CODES_PATH, excludes_sso=True)
async def turn_off_one_time_codes(page: PageContext) -> Response:
    """Turn off one-time codes, and delete the recovery codes."""
    await page.accounts.factors.disenrol(page.person.user, page.client_info)
    return page.redirect(ACCOUNT_PATH, gettext("One-time codes are off."))


@pages.register_post("/account/codes/recovery")
@require_recent_confirmation(CODES_PATH, excludes_sso=True)
async def replace_recovery_codes(page: PageContext) -> Response:
    """Replace the recovery codes, and show the new codes, which cannot be shown again."""
    recovery_codes = await page.accounts.factors.renew_codes(page.person.user, page.client_info)
    return page.render("account/recovery_codes.html", codes=recovery_codes, is_first=False)


@pages.register_form("/account/passkeys")
@require_recent_confirmation(PASSKEYS_PATH, excludes_sso=True)
async def add_passkey(page: PageContext) -> Response:
    """Show the person's passkeys; if the browser submits a new passkey, add it."""
    user, service, form = page.person.user, page.accounts.passkeys, page.form
    if page.must_process:
        await service.register(user, form["credential"], form["challenge"], form["name"], page.client_info)
        return page.redirect(PASSKEYS_PATH, gettext("Passkey added"))
    return page.render("account/passkeys.html", passkeys=await service.list_by_user(user.id))


@pages.register_post("/account/passkeys/options")
@require_recent_confirmation(PASSKEYS_PATH, excludes_sso=True)
async def create_registration_options(page: PageContext) -> Response:
    """Return the WebAuthn options with which the browser creates a passkey, as JSON."""
    return page.respond_json((await page.accounts.passkeys.begin_registration(page.person.user)).options)


@pages.register_post("/account/passkeys/<passkey>/<any(rename, remove):action>")
@require_recent_confirmation(PASSKEYS_PATH, excludes_sso=True)
async def rename_or_remove_passkey(page: PageContext) -> Response:
    """Rename or remove a passkey."""
    service, user, passkey = page.accounts.passkeys, page.person.user, page.path_parameters["passkey"]
    if page.path_parameters["action"] == "rename":
        await service.rename(user, passkey, page.form["name"])
        return page.redirect(PASSKEYS_PATH, gettext("Passkey renamed"))
    await service.remove(user, passkey, page.client_info)
    return page.redirect(PASSKEYS_PATH, gettext("Passkey removed"))


@pages.register_form("/confirm")
async def confirm_identity(page: PageContext) -> Response:
    """Show the form that confirms the person's identity; after the confirmation, continue to the requested page."""
    accounts, user, session, form = page.accounts, page.person.user, page.person.session, page.form
    target = choose_safe_target(form["next"] or page.query["next"])
    if page.must_process:
        if "credential" in form:
            session = await accounts.passkeys.complete_reauthentication(
                user, session, form["credential"], form["challenge"]
            )
        else:
            session = await accounts.passwords.reauthenticate(
                user, session, form["password"], form.get("code"), page.client_info
            )
        _, secret = await page.sessions.renew(session, user, page.client_info)
        return page.redirect(
            target, cookies=[page.build_session_cookie(secret), page.cookies.build_session_version_header()]
        )
    return page.render(
        "account/confirm.html",
        next=target,
        has_password=await accounts.passwords.has_password(user.id),
        asks_for_code=await accounts.factors.has_authenticator(user.id),
        has_passkeys=bool(await accounts.passkeys.list_by_user(user.id)),
    )


@pages.register_post("/confirm/options")
async def create_confirmation_options(page: PageContext) -> Response:
    """Return the WebAuthn options with which the browser confirms the person's identity by a passkey, as JSON."""
    return page.respond_json((await page.accounts.passkeys.begin_reauthentication(page.person.user)).options)


@pages.register_get("/organisations")
async def list_organisations(page: PageContext) -> Response:
    """Show the organisations to which the person belongs."""
    listed = await page.dependencies[Memberships].list_organisations(page.person.user.id, PageRequest(limit=100))
    return page.render("session/organisations.html", orgs=listed.items)


@pages.register_post("/sign-out")
async def sign_out(page: PageContext) -> Response:
    """End the session, and delete its cookie."""
    await page.sessions.revoke(page.person.user.id, page.person.session.id)
    ended = page.cookies.build_header(page.cookies.session_cookie_name, "", 0)
    response = page.redirect(SIGN_IN_PATH, gettext("You are signed out."), tone="info", cookies=[ended])
    response.headers.append((b"clear-site-data", b'"cache", "storage"'))
    return response


@pages.register_post("/switch")
async def switch_organisation_or_mode(page: PageContext) -> Response:
    """Switch the session to another organisation or mode."""
    session = page.person.session
    org = page.form.get("org", session.org or "")
    livemode = page.form.get("mode", "live" if session.livemode else "test") != "test"
    await page.sessions.switch_view(session, org, livemode)
    target = "/console" if org != session.org else choose_safe_target(page.form["next"])
    return page.redirect(target, cookies=[page.cookies.build_session_version_header()])


@pages.register_post("/theme", audience="anybody")
async def set_theme(page: PageContext) -> Response:
    """Set the colour theme: light, dark, or that of the operating system."""
    theme = page.form["theme"] if page.form["theme"] in ("light", "dark") else ""
    return page.redirect(
        choose_safe_target(page.form["next"]),
        cookies=[page.cookies.build_header(THEME_COOKIE, theme, _YEAR_SECONDS if theme else 0)],
    )
