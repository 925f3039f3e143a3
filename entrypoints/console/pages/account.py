"""A person's own account: who they are, how they sign in, where they are signed in, and what has happened."""

from dataclasses import replace
from secrets import token_hex
from typing import Any, Final

from domain.kernel.errors import DomainError
from domain.kernel.names import validate_name
from entrypoints.console.page import Answer, Page
from entrypoints.console.places import safe_place
from entrypoints.console.refusals import Refused, refused
from entrypoints.console.sudo import sudo
from entrypoints.console.visit import Visit
from entrypoints.console.visitors import session_cookie, visitor_of

ACCOUNT: Final = "/console/account"
PASSWORD: Final = "/console/account/password"  # noqa: S105  a page
CODES: Final = "/console/account/codes"
PASSKEYS: Final = "/console/account/passkeys"
_EVENTS: Final = 30


async def account(visit: Visit) -> Answer:
    """All of it at a glance."""
    user, parts = visit.person.user, visit.dependencies
    accounts = parts.accounts
    return _shown(
        visit,
        "account/account.html",
        has_password=await accounts.passwords.has_one(user.id),
        asks_for_code=await accounts.factors.asks_for_code(user.id),
        codes_left=await accounts.factors.codes_left(user.id),
        passkeys=await accounts.passkeys.of_user(user.id),
        sessions=await parts.sessions.list_of(user.id),
        events=await parts.people.events(user.id, _EVENTS),
    )


async def rename(visit: Visit) -> Answer:
    """Be called something else."""
    name = validate_name(visit.form["name"]) if visit.form["name"].strip() else ""
    await visit.dependencies.people.change(replace(visit.person.user, name=name))
    return visit.redirect(ACCOUNT, "Your name is saved.", cookies=[_fresh(visit)])


async def end_session(visit: Visit) -> Answer:
    """End one session; the present one by signing out."""
    parts, user = visit.dependencies, visit.person.user
    await parts.sessions.revoke(user.id, visit.ids["session"])
    await parts.accounts.notices.tell(user, "session_ended", visitor_of(visit))
    return visit.redirect(ACCOUNT, "That session is ended.")


async def end_others(visit: Visit) -> Answer:
    """End all sessions but this one."""
    parts, user = visit.dependencies, visit.person.user
    ended = await parts.sessions.revoke_all(user.id, but=visit.person.session.id)
    await parts.accounts.notices.tell(user, "sessions_ended", visitor_of(visit))
    return visit.redirect(ACCOUNT, f"Ended {ended} other session{'' if ended == 1 else 's'}.")


@sudo(PASSWORD, own=True)
async def password(visit: Visit) -> Answer:
    """Another password, or a first one."""
    user, passwords = visit.person.user, visit.dependencies.accounts.passwords
    told = None
    if visit.asked.method == "POST":
        try:
            await passwords.change(user, visit.form["password"], visit.person.session, visitor_of(visit))
            return visit.redirect(ACCOUNT, "Your password is set. All other sessions are ended.")
        except DomainError as error:
            told = refused(error, visit.request_id)
    has_one = await passwords.has_one(user.id)
    return _shown(visit, "account/password.html", told, has_password=has_one)


@sudo(CODES, own=True)
async def codes(visit: Visit) -> Answer:
    """Turn one-time codes on: the app reads the secret, then shows its first code."""
    user, factors = visit.person.user, visit.dependencies.accounts.factors
    told = None
    if visit.asked.method == "POST":
        try:
            made = await factors.confirm(user, visit.form["code"], visitor_of(visit))
            return _shown(visit, "account/recovery_codes.html", codes=made, first=True)
        except DomainError as error:
            told = refused(error, visit.request_id)
    if await factors.asks_for_code(user.id):
        left = await factors.codes_left(user.id)
        return _shown(visit, "account/codes_on.html", told, codes_left=left)
    enrolment = await factors.enrolling(user) or await factors.enrol(user)
    return _shown(visit, "account/codes.html", told, enrolment=enrolment)


@sudo(CODES, own=True)
async def codes_off(visit: Visit) -> Answer:
    """Turn one-time codes off."""
    await visit.dependencies.accounts.factors.disenrol(visit.person.user, visitor_of(visit))
    return visit.redirect(ACCOUNT, "One-time codes are off.")


@sudo(CODES, own=True)
async def recovery_codes(visit: Visit) -> Answer:
    """Other recovery codes, shown this once."""
    made = await visit.dependencies.accounts.factors.renew_codes(visit.person.user, visitor_of(visit))
    return _shown(visit, "account/recovery_codes.html", codes=made, first=False)


@sudo(PASSKEYS, own=True)
async def passkeys(visit: Visit) -> Answer:
    """The person's passkeys; a form adds one that the browser has just made."""
    user, service, told = visit.person.user, visit.dependencies.accounts.passkeys, None
    if visit.asked.method == "POST":
        form = visit.form
        try:
            await service.register(user, form["answer"], form["challenge"], form["name"], visitor_of(visit))
            return visit.redirect(PASSKEYS, "The passkey is added. You can sign in with it from now on.")
        except DomainError as error:
            told = refused(error, visit.request_id)
    return _shown(visit, "account/passkeys.html", told, passkeys=await service.of_user(user.id))


@sudo(PASSKEYS, own=True)
async def passkey_options(visit: Visit) -> Answer:
    """What the browser is asked to make."""
    return visit.json((await visit.dependencies.accounts.passkeys.registration(visit.person.user)).options)


@sudo(PASSKEYS, own=True)
async def rename_passkey(visit: Visit) -> Answer:
    """Call a passkey something else."""
    await visit.dependencies.accounts.passkeys.rename(visit.person.user, visit.ids["passkey"], visit.form["name"])
    return visit.redirect(PASSKEYS, "The passkey is renamed.")


@sudo(PASSKEYS, own=True)
async def remove_passkey(visit: Visit) -> Answer:
    """Forget a passkey."""
    await visit.dependencies.accounts.passkeys.remove(visit.person.user, visit.ids["passkey"], visitor_of(visit))
    return visit.redirect(PASSKEYS, "The passkey is removed.")


async def confirm(visit: Visit) -> Answer:
    """Prove once more who one is, and go on."""
    accounts, user, session = visit.dependencies.accounts, visit.person.user, visit.person.session
    form, told = visit.form, None
    if visit.asked.method == "POST":
        try:
            if "answer" in form:
                session = await accounts.passkeys.prove(user, session, form["answer"], form["challenge"])
            else:
                given = form["password"], form.get("code")
                session = await accounts.passwords.prove(user, session, *given, visitor_of(visit))
            _, cookie = await visit.dependencies.sessions.renew(session, user, visitor_of(visit))
            return visit.redirect(safe_place(form["next"]), cookies=[session_cookie(visit, cookie), _fresh(visit)])
        except DomainError as error:
            told = refused(error, visit.request_id)
    return _shown(
        visit,
        "account/confirm.html",
        told,
        next=safe_place(form["next"] or visit.query["next"]),
        has_password=await accounts.passwords.has_one(user.id),
        asks_for_code=await accounts.factors.asks_for_code(user.id),
        has_passkeys=bool(await accounts.passkeys.of_user(user.id)),
    )


async def confirm_options(visit: Visit) -> Answer:
    """What the browser is asked to sign, by one of the person's passkeys."""
    return visit.json((await visit.dependencies.accounts.passkeys.proof(visit.person.user)).options)


def _shown(visit: Visit, template: str, told: Refused | None = None, **values: Any) -> Answer:
    """A page with the menu, or without one for who belongs to no organisation."""
    layout = "plain.html" if visit.person.principal is None else "layout.html"
    answer = visit.render(template, status=told.status if told else 200, layout=layout, error=told, **values)
    if told is not None and told.retry_after is not None:
        answer.headers.append((b"retry-after", told.retry_after.encode()))
    return answer


def _fresh(visit: Visit) -> Any:
    """A cookie after which no process shows what it remembers of the session."""
    return visit.console.cookies.look(token_hex(8))


PAGES: Final = (
    Page(ACCOUNT, account, who="person"),
    Page("/console/account/name", rename, methods=("POST",), who="person"),
    Page("/console/account/sessions/end-others", end_others, methods=("POST",), who="person"),
    Page("/console/account/sessions/<session>/end", end_session, methods=("POST",), who="person"),
    Page(PASSWORD, password, methods=("GET", "POST"), who="person"),
    Page(CODES, codes, methods=("GET", "POST"), who="person"),
    Page("/console/account/codes/off", codes_off, methods=("POST",), who="person"),
    Page("/console/account/codes/recovery", recovery_codes, methods=("POST",), who="person"),
    Page(PASSKEYS, passkeys, methods=("GET", "POST"), who="person"),
    Page("/console/account/passkeys/options", passkey_options, methods=("POST",), who="person"),
    Page("/console/account/passkeys/<passkey>/rename", rename_passkey, methods=("POST",), who="person"),
    Page("/console/account/passkeys/<passkey>/remove", remove_passkey, methods=("POST",), who="person"),
    Page("/console/confirm", confirm, methods=("GET", "POST"), who="person"),
    Page("/console/confirm/options", confirm_options, methods=("POST",), who="person"),
)
