"""Setting single sign-on up, step by step: the provider, a domain, a sign-in that works, and then for everybody."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import wraps
from typing import Any, Final

from domain.kernel.errors import DomainError, InvalidRequest, NotFound, PermissionDenied
from domain.kernel.tenancy import Tenant
from domain.orgs.model import OWNER
from domain.orgs.usecases.service import confirm_role
from domain.sso.model import JOINING, Connection, Domain
from domain.sso.ports import ProviderFault, SsoStore
from domain.sso.usecases.proving import seen
from domain.sso.usecases.settings import Wanted
from entrypoints.console.acting import acting
from entrypoints.console.pacing import take_turn
from entrypoints.console.page import Answer, Entry, Page, View
from entrypoints.console.refusals import Refused, refused
from entrypoints.console.sudo import sudo
from entrypoints.console.visit import Visit
from ports.limits import Budget
from ports.unit_of_work import Tx

PLACE: Final = "/console/organisation/single-sign-on"
LOOKS: Final = 10
"""Looks at providers and name servers that an organisation may have done at once; then one every six seconds."""
ROLES_IN_ORDER: Final = ("viewer", "editor", "developer", "billing", "admin")
_FIELDS: Final = ("issuer", "client_id", "joins_as")
_OWNERS: Final = "Only an owner sets up single sign-on: who is let in by it may become anybody of your domains."


async def show(visit: Visit, refusal: Refused | None = None, given: Any = None) -> Answer:
    """What is set up, and the next step."""
    _must_own(visit)
    parts = visit.dependencies
    async with parts.uow.read(_tenant(visit)) as tx:
        connection, domains = await tx[SsoStore].connection(), await tx[SsoStore].domains()
        affected = len(await parts.sso.settings.affected(tx)) if connection else 0
    return visit.render(
        "sso/settings.html",
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


def _step(view: View) -> View:
    """A change that an owner makes; a refusal of it is told on the page, beside what was typed."""

    @wraps(view)
    async def taken(visit: Visit) -> Answer:
        _must_own(visit)
        try:
            return await view(visit)
        except Refused as error:
            refusal = error
        except DomainError as error:
            refusal = refused(error, visit.request_id)
        typed = {name: visit.form.get(name) for name in _FIELDS} if "issuer" in visit.form else None
        return await show(visit, refusal, typed)

    return sudo(PLACE)(taken)


@_step
async def save(visit: Visit) -> Answer:
    """Set the provider up, once it answers as one does."""
    form = visit.form
    wanted = Wanted(
        await _issuer(visit, form.get("issuer")),
        form.get("client_id"),
        form.get("secret") or None,
        form.get("joins_as") or None,
    )
    async with _changing(visit, "sso.set") as tx:
        await visit.dependencies.sso.settings.set(tx, wanted)
    return visit.redirect(PLACE, "The provider is set up.")


@_step
async def switch(visit: Visit) -> Answer:
    """Enforce it, or not; turn it on or off; or forget it."""
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
    async with _changing(visit, f"sso.{act}") as tx:
        if act == "remove":
            await settings.remove(tx)
        elif act in ("enable", "disable"):
            await settings.enable(tx, act == "enable")
        else:
            await settings.enforce(tx, act == "enforce")
    await _bar(visit)
    return visit.redirect(PLACE, told[act])


@_step
async def add_domain(visit: Visit) -> Answer:
    """Name a domain, to prove it."""
    async with _changing(visit, "sso.add_domain") as tx:
        await visit.dependencies.sso.settings.add_domain(tx, visit.form.get("domain"))
    return visit.redirect(f"{PLACE}#domains", "Add the record to the domain, then check it.", tone="info")


@_step
async def check_domain(visit: Visit) -> Answer:
    """Look for the domain's record now."""
    proofs, name = visit.dependencies.sso.proofs, visit.form["domain"]
    await take_turn(visit, _look(visit))
    domain = await _domain(visit, name)
    there = await proofs.is_there(domain)
    if seen(domain, there, visit.dependencies.clock.now()) != domain:
        async with _changing(visit, "sso.check_domain") as tx:
            domain = await proofs.keep(tx, name, there)
        await _bar(visit)
    notice, tone = _seen(domain, there)
    return visit.redirect(f"{PLACE}#domains", notice, tone=tone)


@_step
async def remove_domain(visit: Visit) -> Answer:
    """Name it no more."""
    async with _changing(visit, "sso.remove_domain") as tx:
        await visit.dependencies.sso.settings.remove_domain(tx, visit.form["domain"])
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
    await take_turn(visit, _look(visit))
    try:
        return await visit.dependencies.sso.providers.issuer(text)
    except ProviderFault as error:
        raise InvalidRequest.of("issuer", "invalid_value", str(error)) from None


async def _domain(visit: Visit, name: str) -> Domain:
    async with visit.dependencies.uow.read(_tenant(visit)) as tx:
        found = next((one for one in await tx[SsoStore].domains() if one.domain == name), None)
    if found is None:
        raise NotFound
    return found


@asynccontextmanager
async def _changing(visit: Visit, operation: str) -> AsyncIterator[Tx]:
    """A unit of work of the person's."""
    async with acting(visit, operation, livemode=True) as tx:
        await confirm_role(tx, {OWNER}, _OWNERS)
        yield tx


def _look(visit: Visit) -> Budget:
    return Budget(f"sso-look:{visit.principal.tenant.org}", LOOKS, 1 / 6)


def _must_own(visit: Visit) -> None:
    if visit.principal.role != OWNER:
        raise PermissionDenied(_OWNERS)


def _tenant(visit: Visit) -> Tenant:
    return Tenant(visit.principal.tenant.org, True)


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
