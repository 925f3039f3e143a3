"""Signing in: by password and code, by passkey, by a link; and what helps who has forgotten the password."""

from contextlib import suppress
from secrets import token_hex
from typing import Final

from domain.kernel.errors import DomainError, NotFound
from domain.people.model import Purpose
from domain.people.usecases.signing_in import Entered, StepOver
from entrypoints.console.page import Answer, Page
from entrypoints.console.places import SIGN_IN, safe_place
from entrypoints.console.refusals import Refused, refused
from entrypoints.console.visit import Visit
from entrypoints.console.visitors import device_of, entered_cookies, visitor_of

_SET: Final = "Your password is set. Sign in with it."


async def sign_in(visit: Visit) -> Answer:
    """The form for address and password."""
    if visit.signed_in is not None:
        return visit.redirect(safe_place(visit.query["next"]))
    return _form(visit)


async def by_password(visit: Visit) -> Answer:
    """Sign in, or on to the second step."""
    accounts = visit.dependencies.accounts
    email, password = visit.form.get("email"), visit.form["password"]
    try:
        found = await accounts.sign_in.by_password(email, password, visitor_of(visit), device_of(visit))
    except DomainError as error:
        return _form(visit, error)
    if isinstance(found, Entered):
        return await _entered(visit, found)
    return _second(visit, found.token)


async def by_code(visit: Visit) -> Answer:
    """The second step."""
    token = visit.form["token"]
    try:
        found = await visit.dependencies.accounts.sign_in.by_code(
            token, visit.form["code"], visitor_of(visit), device_of(visit)
        )
    except StepOver as error:
        return _form(visit, error)
    except DomainError as error:
        return _second(visit, token, error)
    return await _entered(visit, found)


async def passkey_options(visit: Visit) -> Answer:
    """What the browser is asked for."""
    return visit.json((await visit.dependencies.accounts.passkeys.sign_in(visitor_of(visit))).options)


async def by_passkey(visit: Visit) -> Answer:
    """Sign in whose passkey has answered."""
    form = visit.form
    try:
        found = await visit.dependencies.accounts.passkeys.signed_in(
            form["answer"], form["challenge"], visitor_of(visit), device_of(visit)
        )
    except DomainError as error:
        return _form(visit, error)
    return await _entered(visit, found)


async def link(visit: Visit) -> Answer:
    """A link for one use: opening it uses nothing up, as mail scanners open links; its button does."""
    secret = visit.ids["secret"]
    if visit.asked.method == "POST":
        found = await visit.dependencies.accounts.sign_in.by_link(secret, visitor_of(visit), device_of(visit))
        if found is not None:
            return await _entered(visit, found)
    holds = await visit.dependencies.links.look(secret, Purpose.SIGN_IN) is not None
    return visit.render("sign_in/link.html", status=200 if holds else 410, holds=holds)


async def forgot(visit: Visit) -> Answer:
    """Ask for a link to set another password; the answer is the same whoever asks."""
    if visit.asked.method != "POST":
        return visit.render("sign_in/forgot.html", sent=False, email=visit.query.get("email"), error=None)
    email = visit.form.get("email")
    try:
        await visit.dependencies.accounts.passwords.forgot(email, visitor_of(visit))
    except DomainError as error:
        told = refused(error, visit.request_id)
        return _told(visit.render("sign_in/forgot.html", status=told.status, sent=False, email=email, error=told), told)
    return visit.render("sign_in/forgot.html", sent=True, email=email, error=None)


async def set_password(visit: Visit) -> Answer:
    """Set a password by a link from a mail."""
    secret, passwords = visit.ids["secret"], visit.dependencies.accounts.passwords
    user, told = await passwords.of_link(secret), None
    if visit.asked.method == "POST" and user is not None:
        try:
            if await passwords.set_by_link(secret, visit.form["password"], visitor_of(visit)) is not None:
                return visit.redirect(SIGN_IN, _SET)
            user = None
        except DomainError as error:
            told = refused(error, visit.request_id)
    status = 410 if user is None else told.status if told else 200
    return visit.render("sign_in/set_password.html", status=status, user=user, error=told)


async def _entered(visit: Visit, entered: Entered) -> Answer:
    """Lead on with the new session; one that this browser had before is ended."""
    if visit.signed_in is not None:
        before = visit.signed_in.session
        with suppress(NotFound):
            await visit.dependencies.sessions.revoke(before.user, before.id)
    cookies = [*entered_cookies(visit, entered), visit.console.cookies.look(token_hex(8))]
    return visit.redirect(safe_place(visit.form["next"]), cookies=cookies)


def _form(visit: Visit, error: DomainError | None = None) -> Answer:
    told = refused(error, visit.request_id) if error else None
    place = safe_place(visit.form["next"] or visit.query["next"])
    email = visit.form.get("email")
    status = told.status if told else 200
    return _told(visit.render("sign_in/sign_in.html", status=status, error=told, next=place, email=email), told)


def _second(visit: Visit, token: str, error: DomainError | None = None) -> Answer:
    told = refused(error, visit.request_id) if error else None
    place = safe_place(visit.form["next"])
    status = told.status if told else 200
    return _told(visit.render("sign_in/code.html", status=status, error=told, next=place, token=token), told)


def _told(answer: Answer, told: Refused | None) -> Answer:
    if told is not None and told.retry_after is not None:
        answer.headers.append((b"retry-after", told.retry_after.encode()))
    return answer


PAGES: Final = (
    Page("/console/sign-in", sign_in, who="anybody"),
    Page("/console/sign-in", by_password, methods=("POST",), who="anybody"),
    Page("/console/sign-in/code", by_code, methods=("POST",), who="anybody"),
    Page("/console/sign-in/passkey", by_passkey, methods=("POST",), who="anybody"),
    Page("/console/sign-in/passkey/options", passkey_options, methods=("POST",), who="anybody"),
    Page("/console/link/<secret>", link, methods=("GET", "POST"), who="anybody"),
    Page("/console/forgot", forgot, methods=("GET", "POST"), who="anybody"),
    Page("/console/set-password/<secret>", set_password, methods=("GET", "POST"), who="anybody"),
)
