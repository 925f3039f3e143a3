"""Pages for setting up single sign-on: the provider, domains, a test sign-in and enforcement."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from domain.kernel.errors import InvalidRequest, NotFound, PermissionDenied
from domain.orgs.model import OWNER
from domain.orgs.usecases.service import require_role
from domain.sso.model import JOINABLE_ROLES
from domain.sso.ports import IdentityProviders, ProviderFault, SsoStore
from domain.sso.usecases.domain_verifier import DomainVerifier, apply_lookup
from domain.sso.usecases.rules import SsoRules
from domain.sso.usecases.settings import SsoConnectionInput, SsoSettings
from domain.sso.usecases.sso_sign_in import SsoSignIn
from entrypoints.console.context import PageContext, Pages, View, require_recent_confirmation
from entrypoints.console.rendering import find_label
from entrypoints.console.translation import N_, gettext
from entrypoints.http.exchange import Response
from ports.clock import Clock
from ports.limits import RateLimitBucket

SSO_PATH = "/console/organisation/single-sign-on"
_ROLES = ("viewer", "editor", "developer", "billing", "admin")
_OWNERS_ONLY = N_(
    "Only owners can set up single sign-on, as it controls who can sign in with an address in your domains."
)

pages = Pages(SSO_PATH, section="Organisation")


@pages.register_get(title=N_("Single sign-on"), scope="org:read")
async def show_settings(page: PageContext) -> Response:
    """Show the settings of single sign-on: identity provider, domains, test and enforcement."""
    _require_owner(page)
    async with page.open_read_transaction(livemode=True) as tx:
        connection, domains = await tx[SsoStore].find_connection(), await tx[SsoStore].list_domains()
        affected = len(await page.dependencies[SsoSettings].list_members_in_verified_domains(tx)) if connection else 0
    form = {"issuer": "", "client_id": "", "default_role": "viewer"}
    if "issuer" in page.form:
        form = {name: page.form.get(name) for name in form}
    elif connection is not None:
        form = {
            "issuer": connection.issuer,
            "client_id": connection.client_id,
            "default_role": connection.joins_as or "",
        }
    return page.render(
        "sso/settings.html",
        connection=connection,
        domains=domains,
        affected=affected,
        roles=[role for role in _ROLES if role in JOINABLE_ROLES],
        redirect_uri=page.dependencies[SsoSignIn].build_redirect_uri(page.principal.tenant.org),
        form=form,
    )


def _require_owner(page: PageContext) -> None:
    """Raise PermissionDenied unless the person is an owner of the organisation."""
    if page.principal.role != OWNER:
        raise PermissionDenied(gettext(_OWNERS_ONLY))


def _register_owner_action(rule: str, view: View) -> None:
    """Register a view for POST that only owners may use. If it fails, the settings page shows the error."""

    async def run_as_owner(page: PageContext) -> Response:
        _require_owner(page)
        return await view(page)

    pages.register_post(rule, error_view=show_settings)(require_recent_confirmation(SSO_PATH)(run_as_owner))


async def _run_as_owner(page: PageContext, operation: str, use_case: Callable[..., Awaitable[Any]], *args: Any) -> None:
    """Call a use case in a transaction that first checks whether the person is still an owner.

    Args:
        page: The context.
        operation: The operation that the audit log records.
        use_case: The use case, which is called with the transaction and `args`.
        *args: Arguments of the use case after the transaction.

    Raises:
        OperationRefused: The person is no longer an owner, or the use case raised a DomainError.
    """
    async with page.open_transaction(operation, livemode=True) as tx:
        await require_role(tx, {OWNER}, gettext(_OWNERS_ONLY))
        await use_case(tx, *args)


async def _limit_queries(page: PageContext) -> None:
    """Count a query to an identity provider or name server in the organisation's rate limit.

    Raises RateLimited beyond the limit, which is ten queries at once, and one more every six seconds.
    """
    await page.take_token(RateLimitBucket(f"sso-look:{page.principal.tenant.org}", 10, 1 / 6))


async def _save_provider(page: PageContext) -> Response:
    """Save the identity provider if its discovery document is valid."""
    form = page.form
    await _limit_queries(page)
    try:
        issuer = await page.dependencies[IdentityProviders].check_issuer(form.get("issuer"))
    except ProviderFault as error:
        raise InvalidRequest.for_field("issuer", "invalid_value", str(error)) from None
    wanted = SsoConnectionInput(
        issuer, form.get("client_id"), form.get("secret") or None, form.get("default_role") or None
    )
    await _run_as_owner(page, "sso.set", page.dependencies[SsoSettings].save_connection, wanted)
    return page.redirect(SSO_PATH, gettext("Identity provider saved"))


async def _switch_sso(page: PageContext) -> Response:
    """Turn single sign-on on or off, start or stop enforcing it, or remove it."""
    settings, action = page.dependencies[SsoSettings], page.form["action"]
    arguments_by_action: Mapping[str, tuple[Any, ...]] = {
        "enforce": (settings.set_enforced, True),
        "relax": (settings.set_enforced, False),
        "enable": (settings.set_enabled, True),
        "disable": (settings.set_enabled, False),
        "remove": (settings.delete_connection,),
    }
    if action not in arguments_by_action:
        raise InvalidRequest
    await _run_as_owner(page, f"sso.{action}", *arguments_by_action[action])
    await _end_barred_sessions(page)
    return page.redirect(SSO_PATH, find_label(action, "sso_actions"))


async def _end_barred_sessions(page: PageContext) -> None:
    """End the sessions that enforced single sign-on does not permit."""
    async with page.open_read_transaction(livemode=True) as tx:
        affected = await page.dependencies[SsoSettings].list_members_bound_to_sso(tx)
    await page.dependencies[SsoRules].revoke_barred(page.principal.tenant.org, affected)


async def _add_domain(page: PageContext) -> Response:
    """Add an email domain, whose ownership is not verified yet."""
    await _run_as_owner(page, "sso.add_domain", page.dependencies[SsoSettings].add_domain, page.form.get("domain"))
    return page.redirect(
        f"{SSO_PATH}#domains", gettext("Domain added. Create its DNS record, then check the domain."), tone="info"
    )


async def _check_domain(page: PageContext) -> Response:
    """Check the DNS record that verifies an email domain, and show the result."""
    verifier, name = page.dependencies[DomainVerifier], page.form["domain"]
    await _limit_queries(page)
    async with page.open_read_transaction(livemode=True) as tx:
        domain = next((one for one in await tx[SsoStore].list_domains() if one.domain == name), None)
    if domain is None:
        raise NotFound
    has_record = await verifier.has_record(domain)
    if apply_lookup(domain, has_record, page.dependencies[Clock].now()) != domain:
        await _run_as_owner(page, "sso.check_domain", verifier.store_result, name, has_record)
        await _end_barred_sessions(page)
    notices = {
        True: gettext("Domain %(domain)s verified", domain=name),
        False: gettext(
            "The record of %(domain)s wasn't found. DNS changes can take an hour; check again later.", domain=name
        ),
        None: gettext("The name servers of %(domain)s did not respond. Check again later.", domain=name),
    }
    return page.redirect(f"{SSO_PATH}#domains", notices[has_record], tone="good" if has_record else "bad")


async def _remove_domain(page: PageContext) -> Response:
    """Remove an email domain."""
    await _run_as_owner(page, "sso.remove_domain", page.dependencies[SsoSettings].remove_domain, page.form["domain"])
    return page.redirect(f"{SSO_PATH}#domains", gettext("Domain removed"), tone="info")


_register_owner_action("/save", _save_provider)
_register_owner_action("/switch", _switch_sso)
_register_owner_action("/domains", _add_domain)
_register_owner_action("/domains/check", _check_domain)
_register_owner_action("/domains/remove", _remove_domain)
