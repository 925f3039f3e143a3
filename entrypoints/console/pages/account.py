"""Pages of a person's own account: profile, sign-in methods, sessions, and the organisation and mode that the session shows."""

from dataclasses import replace

from domain.kernel.names import validate_name
from domain.kernel.paging import PageRequest
from domain.orgs.ports import Memberships
from entrypoints.console.context import PageContext, Pages, sudo
from entrypoints.console.rendering import number
from entrypoints.console.security import SIGN_IN, THEME, safe_target
from entrypoints.console.translation import gettext, ngettext
from entrypoints.http.exchange import Response

ACCOUNT = "/console/account"
PASSWORD = f"{ACCOUNT}/password"
CODES = f"{ACCOUNT}/codes"
PASSKEYS = f"{ACCOUNT}/passkeys"
_YEAR = 365 * 86400

pages = Pages("/console", who="person")


@pages.get("/account")
async def show_account(page: PageContext) -> Response:
    """Show the account with its sign-in methods, sessions and security activity."""
    user, accounts = page.person.user.id, page.accounts
    return page.render(
        "account/account.html",
        has_password=await accounts.passwords.has_one(user),
        asks_for_code=await accounts.factors.asks_for_code(user),
        codes_left=await accounts.factors.codes_left(user),
        passkeys=await accounts.passkeys.of_user(user),
        sessions=await page.sessions.list_of(user),
        events=await page.people.events(user, 30),
    )


@pages.post("/account/name")
async def rename(page: PageContext) -> Response:
    """Change the person's name."""
    name = validate_name(page.form["name"]) if page.form["name"].strip() else ""
    await page.people.change(replace(page.person.user, name=name))
    return page.redirect(ACCOUNT, gettext("Name saved"), cookies=[page.cookies.view()])


@pages.post("/account/sessions/end-others")
async def end_others(page: PageContext) -> Response:
    """End all sessions except the current one."""
    user = page.person.user
    ended = await page.sessions.revoke_all(user.id, but=page.person.session.id)
    await page.accounts.notices.notify(user, "sessions_ended", page.visitor)
    notice = ngettext("%(count)s other session ended", "%(count)s other sessions ended", ended, count=number(ended))
    return page.redirect(ACCOUNT, notice)


@pages.post("/account/sessions/<session>/end")
async def end_session(page: PageContext) -> Response:
    """End another session of the person."""
    user = page.person.user
    await page.sessions.revoke(user.id, page.ids["session"])
    await page.accounts.notices.notify(user, "session_ended", page.visitor)
    return page.redirect(ACCOUNT, gettext("Session ended"))


@pages.form("/account/password")
@sudo(PASSWORD, own=True)
async def change_password(page: PageContext) -> Response:
    """Show the form, and set or change the password."""
    user, passwords = page.person.user, page.accounts.passwords
    if page.submitted:
        await passwords.change(user, page.form["password"], page.person.session, page.visitor)
        return page.redirect(ACCOUNT, gettext("Password saved. Your other sessions have ended."))
    return page.render("account/password.html", has_password=await passwords.has_one(user.id))


@pages.form("/account/codes")
@sudo(CODES, own=True)
async def turn_codes_on(page: PageContext) -> Response:
    """Show the secret for an authenticator app, and turn on one-time codes with the first code."""
    user, factors = page.person.user, page.accounts.factors
    if page.submitted:
        made = await factors.confirm(user, page.form["code"], page.visitor)
        return page.render("account/recovery_codes.html", codes=made, first=True)
    if await factors.asks_for_code(user.id):
        return page.render("account/codes_on.html", codes_left=await factors.codes_left(user.id))
    enrolment = await factors.enrolling(user) or await factors.enrol(user)
    return page.render("account/codes.html", enrolment=enrolment)


@pages.post("/account/codes/off")
@sudo(CODES, own=True)
async def turn_codes_off(page: PageContext) -> Response:
    """Turn off one-time codes."""
    await page.accounts.factors.disenrol(page.person.user, page.visitor)
    return page.redirect(ACCOUNT, gettext("One-time codes are off."))


@pages.post("/account/codes/recovery")
@sudo(CODES, own=True)
async def renew_recovery_codes(page: PageContext) -> Response:
    """Replace the recovery codes and show the new ones once."""
    made = await page.accounts.factors.renew_codes(page.person.user, page.visitor)
    return page.render("account/recovery_codes.html", codes=made, first=False)


@pages.form("/account/passkeys")
@sudo(PASSKEYS, own=True)
async def add_passkey(page: PageContext) -> Response:
    """Show the person's passkeys, and add one that the browser has created."""
    user, service, form = page.person.user, page.accounts.passkeys, page.form
    if page.submitted:
        await service.register(user, form["answer"], form["challenge"], form["name"], page.visitor)
        return page.redirect(PASSKEYS, gettext("Passkey added"))
    return page.render("account/passkeys.html", passkeys=await service.of_user(user.id))


@pages.post("/account/passkeys/options")
@sudo(PASSKEYS, own=True)
async def registration_options(page: PageContext) -> Response:
    """Return the options for creating a passkey."""
    return page.json((await page.accounts.passkeys.registration(page.person.user)).options)


@pages.post("/account/passkeys/<passkey>/<any(rename, remove):what>")
@sudo(PASSKEYS, own=True)
async def change_passkey(page: PageContext) -> Response:
    """Rename or remove a passkey."""
    service, user, passkey = page.accounts.passkeys, page.person.user, page.ids["passkey"]
    if page.ids["what"] == "rename":
        await service.rename(user, passkey, page.form["name"])
        return page.redirect(PASSKEYS, gettext("Passkey renamed"))
    await service.remove(user, passkey, page.visitor)
    return page.redirect(PASSKEYS, gettext("Passkey removed"))


@pages.form("/confirm")
async def confirm(page: PageContext) -> Response:
    """Confirm the person's identity and continue to the requested page."""
    accounts, user, session, form = page.accounts, page.person.user, page.person.session, page.form
    target = safe_target(form["next"] or page.query["next"])
    if page.submitted:
        if "answer" in form:
            session = await accounts.passkeys.prove(user, session, form["answer"], form["challenge"])
        else:
            session = await accounts.passwords.prove(user, session, form["password"], form.get("code"), page.visitor)
        _, secret = await page.sessions.renew(session, user, page.visitor)
        return page.redirect(target, cookies=[page.session_cookie(secret), page.cookies.view()])
    return page.render(
        "account/confirm.html",
        next=target,
        has_password=await accounts.passwords.has_one(user.id),
        asks_for_code=await accounts.factors.asks_for_code(user.id),
        has_passkeys=bool(await accounts.passkeys.of_user(user.id)),
    )


@pages.post("/confirm/options")
async def proof_options(page: PageContext) -> Response:
    """Return the options for a confirmation with a passkey."""
    return page.json((await page.accounts.passkeys.proof(page.person.user)).options)


@pages.get("/organisations")
async def list_organisations(page: PageContext) -> Response:
    """Show the person's organisations."""
    listed = await page.dependencies[Memberships].of_user(page.person.user.id, PageRequest(limit=100))
    return page.render("session/organisations.html", orgs=listed.items)


@pages.post("/sign-out")
async def sign_out(page: PageContext) -> Response:
    """End the session in the browser and on the server."""
    await page.sessions.revoke(page.person.user.id, page.person.session.id)
    ended = page.cookies.set(page.cookies.session, "", 0)
    response = page.redirect(SIGN_IN, gettext("You are signed out."), tone="info", cookies=[ended])
    response.headers.append((b"clear-site-data", b'"cache", "storage"'))
    return response


@pages.post("/look-at")
async def look_at(page: PageContext) -> Response:
    """Switch the session to another organisation or mode."""
    session = page.person.session
    org = page.form.get("org", session.org or "")
    livemode = page.form.get("mode", "live" if session.livemode else "test") != "test"
    await page.sessions.look_at(session, org, livemode)
    target = "/console" if org != session.org else safe_target(page.form["next"])
    return page.redirect(target, cookies=[page.cookies.view()])


@pages.post("/theme", who="anybody")
async def choose_theme(page: PageContext) -> Response:
    """Set the theme: light, dark, or that of the system."""
    theme = page.form["theme"] if page.form["theme"] in ("light", "dark") else ""
    return page.redirect(
        safe_target(page.form["next"]), cookies=[page.cookies.set(THEME, theme, _YEAR if theme else 0)]
    )
