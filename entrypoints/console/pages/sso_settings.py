"""Pages for setting up single sign-on: the provider, domains, a test sign-in and enforcement."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from domain.kernel.errors import InvalidRequest, NotFound, PermissionDenied
from domain.orgs.model import OWNER
from domain.orgs.usecases.service import confirm_role
from domain.sso.model import JOINING
from domain.sso.ports import IdentityProviders, ProviderFault, SsoStore
from domain.sso.usecases.proving import DomainProofs, seen
from domain.sso.usecases.rules import SsoRules
from domain.sso.usecases.settings import SsoSettings, Wanted
from domain.sso.usecases.signing_in import SsoSignIn
from entrypoints.console.context import PageContext, Pages, View, sudo
from entrypoints.console.rendering import label
from entrypoints.console.translation import N_, gettext
from entrypoints.http.exchange import Response
from ports.clock import Clock
from ports.limits import Budget

PLACE = "/console/organisation/single-sign-on"
_ROLES = ("viewer", "editor", "developer", "billing", "admin")
_OWNERS = N_("Only owners can set up single sign-on, as it controls who can sign in with an address in your domains.")

pages = Pages(PLACE, section="Organisation")


@pages.get(title=N_("Single sign-on"), scope="org:read")
async def show_settings(page: PageContext) -> Response:
    """Show the configuration and the next step."""
    _require_owner(page)
    async with page.read(livemode=True) as tx:
        connection, domains = await tx[SsoStore].connection(), await tx[SsoStore].domains()
        affected = len(await page.dependencies[SsoSettings].affected(tx)) if connection else 0
    given = {"issuer": "", "client_id": "", "joins_as": "viewer"}
    if "issuer" in page.form:
        given = {name: page.form.get(name) for name in given}
    elif connection is not None:
        given = {name: getattr(connection, name) or "" for name in given}
    return page.render(
        "sso/settings.html",
        connection=connection,
        domains=domains,
        affected=affected,
        roles=[role for role in _ROLES if role in JOINING],
        redirect_uri=page.dependencies[SsoSignIn].redirect_uri(page.principal.tenant.org),
        given=given,
    )


def _require_owner(page: PageContext) -> None:
    if page.principal.role != OWNER:
        raise PermissionDenied(gettext(_OWNERS))


def _step(rule: str, view: View) -> None:
    """Register a change that only owners can make; the settings page shows its refusal."""

    async def run_step(page: PageContext) -> Response:
        _require_owner(page)
        return await view(page)

    pages.post(rule, again=show_settings)(sudo(PLACE)(run_step))


async def _change(page: PageContext, operation: str, act: Callable[..., Awaitable[Any]], *args: Any) -> None:
    """Run a use case in a transaction, after checking again that the person is an owner."""
    async with page.transaction(operation, livemode=True) as tx:
        await confirm_role(tx, {OWNER}, gettext(_OWNERS))
        await act(tx, *args)


async def _take_turn(page: PageContext) -> None:
    """Limit an organisation to a burst of ten provider or DNS queries, then one every six seconds. Raises RateLimited."""
    await page.take_turn(Budget(f"sso-look:{page.principal.tenant.org}", 10, 1 / 6))


async def _save(page: PageContext) -> Response:
    """Save the provider after validating its discovery document."""
    form = page.form
    await _take_turn(page)
    try:
        issuer = await page.dependencies[IdentityProviders].issuer(form.get("issuer"))
    except ProviderFault as error:
        raise InvalidRequest.of("issuer", "invalid_value", str(error)) from None
    wanted = Wanted(issuer, form.get("client_id"), form.get("secret") or None, form.get("joins_as") or None)
    await _change(page, "sso.set", page.dependencies[SsoSettings].set, wanted)
    return page.redirect(PLACE, gettext("Identity provider saved"))


async def _switch(page: PageContext) -> Response:
    """Enforce, relax, enable, disable or remove single sign-on."""
    settings, act = page.dependencies[SsoSettings], page.form["act"]
    acts: Mapping[str, tuple[Any, ...]] = {
        "enforce": (settings.enforce, True),
        "relax": (settings.enforce, False),
        "enable": (settings.enable, True),
        "disable": (settings.enable, False),
        "remove": (settings.remove,),
    }
    if act not in acts:
        raise InvalidRequest
    await _change(page, f"sso.{act}", *acts[act])
    await _end_sessions(page)
    return page.redirect(PLACE, label(act, "sso_acts"))


async def _end_sessions(page: PageContext) -> None:
    """End the sessions of members who must now use single sign-on."""
    async with page.read(livemode=True) as tx:
        affected = await page.dependencies[SsoSettings].obliged(tx)
    await page.dependencies[SsoRules].barred(page.principal.tenant.org, affected)


async def _add_domain(page: PageContext) -> Response:
    """Add a domain that is not yet verified."""
    await _change(page, "sso.add_domain", page.dependencies[SsoSettings].add_domain, page.form.get("domain"))
    return page.redirect(
        f"{PLACE}#domains", gettext("Domain added. Create its DNS record, then check the domain."), tone="info"
    )


async def _check_domain(page: PageContext) -> Response:
    """Check the domain's DNS record now."""
    proofs, name = page.dependencies[DomainProofs], page.form["domain"]
    await _take_turn(page)
    async with page.read(livemode=True) as tx:
        domain = next((one for one in await tx[SsoStore].domains() if one.domain == name), None)
    if domain is None:
        raise NotFound
    there = await proofs.is_there(domain)
    if seen(domain, there, page.dependencies[Clock].now()) != domain:
        await _change(page, "sso.check_domain", proofs.keep, name, there)
        await _end_sessions(page)
    notices = {
        True: gettext("Domain %(domain)s verified", domain=name),
        False: gettext(
            "The record of %(domain)s wasn't found. DNS changes can take an hour; check again later.", domain=name
        ),
        None: gettext("The name servers of %(domain)s did not respond. Check again later.", domain=name),
    }
    return page.redirect(f"{PLACE}#domains", notices[there], tone="good" if there else "bad")


async def _remove_domain(page: PageContext) -> Response:
    """Remove a domain."""
    await _change(page, "sso.remove_domain", page.dependencies[SsoSettings].remove_domain, page.form["domain"])
    return page.redirect(f"{PLACE}#domains", gettext("Domain removed"), tone="info")


_step("/save", _save)
_step("/switch", _switch)
_step("/domains", _add_domain)
_step("/domains/check", _check_domain)
_step("/domains/remove", _remove_domain)
