"""Commands for single sign-on of an organisation: identity provider, enforcement and domains."""

import os
import sys
from typing import Annotated, Any

from cyclopts import Parameter

from domain.access.model import ROLES
from domain.kernel.mail_addresses import normalise_mail_address
from domain.kernel.tenancy import Tenant
from domain.orgs.model import Organisation
from domain.sso.model import MailDomain
from domain.sso.ports import IdentityProviders, ProviderFault, SsoStore
from domain.sso.usecases.domain_verifier import DomainVerifier
from domain.sso.usecases.rules import SsoRules
from domain.sso.usecases.settings import SsoConnectionInput, SsoSettings
from domain.sso.usecases.sso_sign_in import SsoSignIn
from entrypoints.cli.store import OrganisationOptions, select_attributes
from entrypoints.dependencies import Dependencies
from entrypoints.errors import CommandError
from entrypoints.provisioning import begin_operator_change
from entrypoints.settings import resolve_file_settings
from ports.unit_of_work import UnitOfWork

SECRET_VARIABLE = "JOINERY_SSO_SECRET"  # noqa: S105  the name of a variable
NOBODY = "nobody"


async def set_up(
    *,
    issuer: str,
    client_id: str,
    joins_as: Annotated[str, Parameter(choices=[*sorted({*ROLES} - {"owner"}), NOBODY])] = NOBODY,
    keep_secret: bool = False,
    options: OrganisationOptions,
) -> int:
    """Set up or change an identity provider; the client secret is read from JOINERY_SSO_SECRET or standard input.

    Args:
        issuer: Issuer URL of the provider, without /.well-known/openid-configuration.
        client_id: Client ID of Joinery at the provider.
        joins_as: Role of people who join the organisation by signing in. With nobody, they cannot join.
        keep_secret: Keep the stored client secret.
    """
    secret = None if keep_secret else _read_client_secret()
    async with options.open_organisation() as (dependencies, organisation):
        try:
            issuer = await dependencies[IdentityProviders].check_issuer(issuer)
        except ProviderFault as error:
            raise CommandError(str(error)) from error
        async with begin_operator_change(dependencies, organisation, "sso.set") as tx:
            await dependencies[SsoSettings].save_connection(
                tx, SsoConnectionInput(issuer, client_id, secret, None if joins_as == NOBODY else joins_as)
            )
        redirect_uri = dependencies[SsoSignIn].build_redirect_uri(organisation.id)
    result = {"organisation": organisation.id, "issuer": issuer, "redirect_uri": redirect_uri}
    return options.print_result(result, f"Saved. Register this redirect URI at the provider:\n{redirect_uri}")


def _read_client_secret() -> str:
    """Read the client secret from the environment, else from a line of standard input. Raises CommandError if it is empty."""
    secret = resolve_file_settings(os.environ).get(SECRET_VARIABLE) or (
        "" if sys.stdin.isatty() else sys.stdin.readline().rstrip("\r\n")
    )
    if not secret:
        raise CommandError(
            f"Set the client secret in {SECRET_VARIABLE} or on standard input, or use --keep-secret to keep the stored one."
        )
    return secret


async def show(*, options: OrganisationOptions) -> int:
    """Show the identity provider, and the DNS record that verifies each domain."""
    async with options.open_organisation() as (dependencies, organisation):
        async with dependencies[UnitOfWork].begin_reading(Tenant(organisation.id, True)) as tx:
            connection, domains = await tx[SsoStore].find_connection(), await tx[SsoStore].list_domains()
        redirect_uri = dependencies[SsoSignIn].build_redirect_uri(organisation.id)
    connection_json: dict[str, Any] | None = None
    sentence = f"{organisation.name} has no single sign-on."
    if connection is not None:
        connection_json = select_attributes(connection, "issuer", "client_id", "joins_as", "enabled", "enforced")
        connection_json["tried_at"] = connection.tried_at.isoformat() if connection.tried_at else None
        state = "enforced" if connection.enforced else "on" if connection.enabled else "off"
        tried = f"{connection.tried_at:%d %B %Y}" if connection.tried_at else "none yet"
        sentence = (
            f"Single sign-on: {state}. Issuer: {connection.issuer}. Client ID: {connection.client_id}. "
            f"First successful sign-in with these settings: {tried}."
        )
    result = {
        "organisation": organisation.id,
        "redirect_uri": redirect_uri,
        "connection": connection_json,
        "domains": [select_attributes(domain, "domain", "state", "record") for domain in domains],
    }
    lines = [f"{domain.domain:<32} {domain.state:<8} {domain.record}" for domain in domains]
    return options.print_result(result, sentence, f"Redirect URI: {redirect_uri}", *lines)


async def add_or_check_domain(domain: str, /, *, options: OrganisationOptions) -> int:
    """Add a domain; if it is already listed, check its DNS record.

    Args:
        domain: Domain of members' email addresses.
    """
    async with options.open_organisation() as (dependencies, organisation):
        domain_proof = await _add_or_check_domain(dependencies, organisation, domain)
    sentences = {
        "proven": f"{domain_proof.domain} is verified.",
        "lost": f"The TXT record of {domain_proof.domain} was removed. Add it again: {domain_proof.record}",
        "waiting": f"Add this TXT record to {domain_proof.domain}, then run the command again:\n{domain_proof.record}",
    }
    result = {"organisation": organisation.id, **select_attributes(domain_proof, "domain", "state", "record")}
    return options.print_result(result, sentences[domain_proof.state])


async def _add_or_check_domain(dependencies: Dependencies, organisation: Organisation, name: str) -> MailDomain:
    """Add the domain with the name, or check the DNS record of an existing one; return the domain with its state."""
    normalised = normalise_mail_address(name).removeprefix("@").rstrip(".")
    async with dependencies[UnitOfWork].begin_reading(Tenant(organisation.id, True)) as tx:
        existing = next((row for row in await tx[SsoStore].list_domains() if row.domain == normalised), None)
    domain: MailDomain
    if existing is None:
        async with begin_operator_change(dependencies, organisation, "sso.add_domain") as tx:
            domain = await dependencies[SsoSettings].add_domain(tx, name)
        return domain
    is_present = await dependencies[DomainVerifier].has_record(existing)
    if is_present is None:
        raise CommandError(f"The name servers of {normalised} did not respond. Try again.")
    async with begin_operator_change(dependencies, organisation, "sso.check_domain") as tx:
        domain = await dependencies[DomainVerifier].store_result(tx, normalised, is_present)
        required_members = await dependencies[SsoSettings].list_members_bound_to_sso(tx)
    await dependencies[SsoRules].revoke_barred(organisation.id, required_members)
    return domain


async def remove(*, options: OrganisationOptions) -> int:
    """Remove the identity provider and the links of members to their accounts there."""
    async with options.begin_change("sso.remove") as (dependencies, organisation, tx):
        await dependencies[SsoSettings].delete_connection(tx)
    result = {"organisation": organisation.id, "removed": True}
    return options.print_result(result, f"{organisation.name} no longer has single sign-on.")


async def enforce(*, off: bool = False, options: OrganisationOptions) -> int:
    """Require single sign-on for members of verified domains.

    Args:
        off: Allow other sign-in methods again, for example if the provider is down.
    """
    async with options.open_organisation() as (dependencies, organisation):
        async with begin_operator_change(dependencies, organisation, "sso.enforce") as tx:
            await dependencies[SsoSettings].set_enforced(tx, not off)
            affected = () if off else await dependencies[SsoSettings].list_members_in_verified_domains(tx)
        ended = await dependencies[SsoRules].revoke_barred(organisation.id, affected)
    answer = {"organisation": organisation.id, "enforced": not off, "sessions_ended": ended}
    result = "can use other sign-in methods again." if off else f"must now use single sign-on; {ended} sessions ended."
    return options.print_result(answer, f"{organisation.name}'s members {result}")
