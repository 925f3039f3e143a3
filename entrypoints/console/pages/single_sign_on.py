"""Setting single sign-on up, step by step: the provider, a domain, a sign-in that works, and then for everybody."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from domain.access.model import Principal
from domain.kernel.errors import DomainError, InvalidRequest, NotFound, PermissionDenied, RateLimited
from domain.kernel.tenancy import AuditContext, Tenant
from domain.orgs.model import OWNER
from domain.people.usecases.members import confirm_role
from domain.sso.model import JOINING, Connection, Domain
from domain.sso.usecases.proving import seen
from domain.sso.usecases.settings import Wanted
from entrypoints.console.page import Answer, Entry, Page
from entrypoints.console.refusals import Refused, refused
from entrypoints.console.sudo import sudo
from entrypoints.console.visit import Visit
from ports.identity_providers import ProviderFault
from ports.limits import Budget
from ports.unit_of_work import Tx

PLACE: Final = "/console/organisation/single-sign-on"
LOOKS: Final = 10
"""Looks at providers and name servers that an organisation may have done at once; then one every six seconds."""
ROLES_IN_ORDER: Final = ("viewer", "editor", "developer", "billing", "admin")
_OWNERS: Final = "Only an owner sets up single sign-on: who is let in by it may become anybody of your domains."


async def show(visit: Visit, refusal: Refused | None = None, given: Any = None) -> Answer:
    """What is set up, and the next step."""
    _must_own(visit)
    parts = visit.dependencies
    async with parts.uow.read(_tenant(visit)) as tx:
        connection, domains = await tx.sso.connection(), await tx.sso.domains()
        affected = len(await parts.sso.settings.affected(tx)) if connection else 0
    return visit.render(
        "organisation/single_sign_on.html",
        status=refusal.status if refusal else 200,
        connection=connection,
        domains=domains,
        proven=[one for one in domains if one.proven_at],
        affected=affected,
        roles=[role for role in ROLES_IN_ORDER if role in JOINING],
        redirect_uri=parts.sso.sign_in.redirect_uri(visit.principal.tenant.org),
        place=PLACE,
        given=given if given is not None else _given(connection),
        errors=refusal.fields if refusal else {},
        refusal=refusal,
    )


@sudo(PLACE)
async def save(visit: Visit) -> Answer:
    """Set the provider up, once it answers as one does."""
    _must_own(visit)
    form, parts = visit.form, visit.dependencies
    try:
        wanted = Wanted(
            await _issuer(visit, form.get("issuer")),
            form.get("client_id"),
            form.get("secret") or None,
            form.get("joins_as") or None,
        )
        async with _changing(visit, "sso.set") as tx:
            await parts.sso.settings.set(tx, wanted)
    except DomainError as error:
        given = {name: form.get(name) for name in ("issuer", "client_id", "joins_as")}
        return await show(visit, refused(error, visit.request_id), given)
    return visit.redirect(PLACE, "The provider is set up.")


@sudo(PLACE)
async def switch(visit: Visit) -> Answer:
    """Enforce it, or not; turn it on or off; or forget it."""
    _must_own(visit)
    settings, act = visit.dependencies.sso.settings, visit.form["act"]
    told = {
        "enforce": "Members of your domains come in by single sign-on alone now. Other sessions of theirs have ended.",
        "relax": "Members may sign in in other ways again.",
        "enable": "Single sign-on is on.",
        "disable": "Single sign-on is off.",
        "remove": "Single sign-on is removed.",
    }
    if act not in told:
        raise InvalidRequest
    try:
        async with _changing(visit, f"sso.{act}") as tx:
            if act == "remove":
                await settings.remove(tx)
            elif act in ("enable", "disable"):
                await settings.enable(tx, act == "enable")
            else:
                await settings.enforce(tx, act == "enforce")
        await _bar(visit)
    except DomainError as error:
        return await show(visit, refused(error, visit.request_id))
    return visit.redirect(PLACE, told[act])


@sudo(PLACE)
async def add_domain(visit: Visit) -> Answer:
    """Name a domain, to prove it."""
    _must_own(visit)
    try:
        async with _changing(visit, "sso.add_domain") as tx:
            await visit.dependencies.sso.settings.add_domain(tx, visit.form.get("domain"))
    except DomainError as error:
        return await show(visit, refused(error, visit.request_id))
    return visit.redirect(f"{PLACE}#domains", "Add the record to the domain, then check it.", tone="info")


@sudo(PLACE)
async def check_domain(visit: Visit) -> Answer:
    """Look for the domain's record now."""
    _must_own(visit)
    proofs, name = visit.dependencies.sso.proofs, visit.form["domain"]
    try:
        await _take_turn(visit)
        domain = await _domain(visit, name)
        there = await proofs.is_there(domain)
        if seen(domain, there, visit.dependencies.clock.now()) != domain:
            async with _changing(visit, "sso.check_domain") as tx:
                domain = await proofs.keep(tx, name, there)
            await _bar(visit)
    except DomainError as error:
        return await show(visit, refused(error, visit.request_id))
    notice, tone = _seen(domain, there)
    return visit.redirect(f"{PLACE}#domains", notice, tone=tone)


@sudo(PLACE)
async def remove_domain(visit: Visit) -> Answer:
    """Name it no more."""
    _must_own(visit)
    try:
        async with _changing(visit, "sso.remove_domain") as tx:
            await visit.dependencies.sso.settings.remove_domain(tx, visit.form["domain"])
    except DomainError as error:
        return await show(visit, refused(error, visit.request_id))
    return visit.redirect(f"{PLACE}#domains", "The domain is removed.", tone="info")


async def _bar(visit: Visit) -> None:
    """End the sessions of whoever has to come in by single sign-on from now on."""
    sso = visit.dependencies.sso
    async with visit.dependencies.uow.read(_tenant(visit)) as tx:
        affected = await sso.settings.obliged(tx)
    await sso.rules.barred(visit.principal.tenant.org, affected)


def _seen(domain: Domain, there: bool | None) -> tuple[str, str]:
    if there:
        return f"{domain.domain} is proven.", "good"
    if there is None:
        return f"The name servers of {domain.domain} did not answer. Try again in a while.", "bad"
    return f"{domain.domain} has no such record yet. It may take an hour until name servers tell of it.", "bad"


async def _issuer(visit: Visit, text: str) -> str:
    """The issuer as its provider spells it. Raises InvalidRequest."""
    await _take_turn(visit)
    try:
        return await visit.dependencies.sso.providers.issuer(text)
    except ProviderFault as error:
        raise InvalidRequest.of("issuer", "invalid_value", str(error)) from None


async def _domain(visit: Visit, name: str) -> Domain:
    async with visit.dependencies.uow.read(_tenant(visit)) as tx:
        found = next((one for one in await tx.sso.domains() if one.domain == name), None)
    if found is None:
        raise NotFound
    return found


@asynccontextmanager
async def _changing(visit: Visit, operation: str) -> AsyncIterator[Tx]:
    """A unit of work of the person's."""
    context = AuditContext(visit.principal.actor, operation, visit.request_id)
    async with visit.dependencies.uow.begin(_tenant(visit), context) as tx:
        await confirm_role(tx, {OWNER}, _OWNERS)
        yield tx


async def _take_turn(visit: Visit) -> None:
    taken = await visit.dependencies.limits.take(Budget(f"sso-look:{visit.principal.tenant.org}", LOOKS, 1 / 6))
    if not taken.allowed:
        raise RateLimited(retry_after=max(1, int(taken.next_in) + 1))


def _must_own(visit: Visit) -> None:
    if visit.principal.role != OWNER:
        raise PermissionDenied(_OWNERS)


def _tenant(visit: Visit) -> Tenant:
    principal: Principal = visit.principal
    return Tenant(principal.tenant.org, True)


def _given(connection: Connection | None) -> dict[str, str]:
    if connection is None:
        return {"issuer": "", "client_id": "", "joins_as": "viewer"}
    return {"issuer": connection.issuer, "client_id": connection.client_id, "joins_as": connection.joins_as or ""}


PAGES: Final = (
    Page(PLACE, show, menu=Entry("Organisation", "Single sign-on"), scope="org:read"),
    Page(f"{PLACE}/save", save, methods=("POST",), menu="Organisation"),
    Page(f"{PLACE}/switch", switch, methods=("POST",), menu="Organisation"),
    Page(f"{PLACE}/domains", add_domain, methods=("POST",), menu="Organisation"),
    Page(f"{PLACE}/domains/check", check_domain, methods=("POST",), menu="Organisation"),
    Page(f"{PLACE}/domains/remove", remove_domain, methods=("POST",), menu="Organisation"),
)
