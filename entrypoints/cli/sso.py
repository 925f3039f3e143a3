"""Commands for organisations' single sign-on: identity provider, enforcement and domains."""

import os
import sys
from typing import Annotated, Any

from cyclopts import Parameter

from domain.access.model import ROLES
from domain.kernel.mail_addresses import address_key
from domain.kernel.tenancy import Tenant
from domain.orgs.model import Organisation
from domain.sso.model import Domain
from domain.sso.ports import IdentityProviders, ProviderFault, SsoStore
from domain.sso.usecases.proving import DomainProofs
from domain.sso.usecases.rules import SsoRules
from domain.sso.usecases.settings import SsoSettings, Wanted
from domain.sso.usecases.signing_in import SsoSignIn
from entrypoints.cli.store import OrganisationStore, attributes
from entrypoints.dependencies import Dependencies
from entrypoints.errors import CommandError
from entrypoints.provisioning import begin
from entrypoints.settings import read_file_settings
from ports.unit_of_work import UnitOfWork

SECRET = "JOINERY_SSO_SECRET"  # noqa: S105  the name of a variable
NOBODY = "nobody"


async def set_up(
    *,
    issuer: str,
    client_id: str,
    joins_as: Annotated[str, Parameter(choices=[*sorted({*ROLES} - {"owner"}), NOBODY])] = NOBODY,
    keep_secret: bool = False,
    store: OrganisationStore,
) -> int:
    """Set up or change an identity provider; its secret comes from JOINERY_SSO_SECRET or standard input.

    Args:
        issuer: the provider's issuer
        client_id: Joinery's client ID at the provider
        joins_as: role of new people who sign in (nobody: they cannot join)
        keep_secret: keep the stored secret
    """
    secret = None if keep_secret else _read_secret()
    async with store.find() as (parts, organisation):
        try:
            issuer = await parts[IdentityProviders].issuer(issuer)
        except ProviderFault as error:
            raise CommandError(str(error)) from error
        async with begin(parts, organisation, "sso.set") as tx:
            await parts[SsoSettings].set(
                tx, Wanted(issuer, client_id, secret, None if joins_as == NOBODY else joins_as)
            )
        redirect_uri = parts[SsoSignIn].redirect_uri(organisation.id)
    answer = {"organisation": organisation.id, "issuer": issuer, "redirect_uri": redirect_uri}
    return store.answer(answer, f"Saved. Register this redirect URI at the provider:\n{redirect_uri}")


def _read_secret() -> str:
    """Read the client secret from the environment, else from a line of standard input; never from the arguments."""
    secret = read_file_settings(os.environ).get(SECRET) or (
        "" if sys.stdin.isatty() else sys.stdin.readline().rstrip("\r\n")
    )
    if not secret:
        raise CommandError(
            f"Set the client secret in {SECRET} or on standard input, or use --keep-secret to keep the stored one."
        )
    return secret


async def show(*, store: OrganisationStore) -> int:
    """Show the identity provider, and each domain's record."""
    async with store.find() as (parts, organisation):
        async with parts[UnitOfWork].read(Tenant(organisation.id, True)) as tx:
            connection, domains = await tx[SsoStore].connection(), await tx[SsoStore].domains()
        redirect_uri = parts[SsoSignIn].redirect_uri(organisation.id)
    connection_json: dict[str, Any] | None = None
    sentence = f"{organisation.name} has no single sign-on."
    if connection is not None:
        connection_json = attributes(connection, "issuer", "client_id", "joins_as", "enabled", "enforced")
        connection_json["tried_at"] = connection.tried_at.isoformat() if connection.tried_at else None
        state = "enforced" if connection.enforced else "on" if connection.enabled else "off"
        tried = f"{connection.tried_at:%d %B %Y}" if connection.tried_at else "not yet"
        sentence = f"{connection.issuer} as {connection.client_id}: {state}; first successful sign-in: {tried}."
    answer = {
        "organisation": organisation.id,
        "redirect_uri": redirect_uri,
        "connection": connection_json,
        "domains": [attributes(domain, "domain", "state", "record") for domain in domains],
    }
    lines = [f"{domain.domain:<32} {domain.state:<8} {domain.record}" for domain in domains]
    return store.answer(answer, sentence, f"Redirect URI: {redirect_uri}", *lines)


async def add_domain(domain: str, /, *, store: OrganisationStore) -> int:
    """Add a domain, or check the record of an existing one."""
    async with store.find() as (parts, organisation):
        domain_proof = await _prove(parts, organisation, domain)
    sentences = {
        "proven": f"{domain_proof.domain} is verified.",
        "lost": f"The record of {domain_proof.domain} was removed.",
        "waiting": f"Add this TXT record to {domain_proof.domain}, then run the command again:\n{domain_proof.record}",
    }
    answer = {"organisation": organisation.id, **attributes(domain_proof, "domain", "state", "record")}
    return store.answer(answer, sentences[domain_proof.state])


async def _prove(parts: Dependencies, organisation: Organisation, name: str) -> Domain:
    """Add the domain, or check its record if it exists; return it."""
    normalised = address_key(name).removeprefix("@").rstrip(".")
    async with parts[UnitOfWork].read(Tenant(organisation.id, True)) as tx:
        existing = next((row for row in await tx[SsoStore].domains() if row.domain == normalised), None)
    domain: Domain
    if existing is None:
        async with begin(parts, organisation, "sso.add_domain") as tx:
            domain = await parts[SsoSettings].add_domain(tx, name)
        return domain
    is_present = await parts[DomainProofs].is_there(existing)
    if is_present is None:
        raise CommandError(f"The name servers of {normalised} did not respond. Try again.")
    async with begin(parts, organisation, "sso.check_domain") as tx:
        domain = await parts[DomainProofs].keep(tx, normalised, is_present)
        required_members = await parts[SsoSettings].obliged(tx)
    await parts[SsoRules].barred(organisation.id, required_members)
    return domain


async def remove(*, store: OrganisationStore) -> int:
    """Remove the identity provider and its sign-in links."""
    async with store.change("sso.remove") as (parts, organisation, tx):
        await parts[SsoSettings].remove(tx)
    answer = {"organisation": organisation.id, "removed": True}
    return store.answer(answer, f"{organisation.name} no longer has single sign-on.")


async def enforce(*, off: bool = False, store: OrganisationStore) -> int:
    """Require single sign-on for members of verified domains.

    Args:
        off: allow other sign-in methods again, for example if the provider is down
    """
    async with store.find() as (parts, organisation):
        async with begin(parts, organisation, "sso.enforce") as tx:
            await parts[SsoSettings].enforce(tx, not off)
            affected = () if off else await parts[SsoSettings].affected(tx)
        ended = await parts[SsoRules].barred(organisation.id, affected)
    answer = {"organisation": organisation.id, "enforced": not off, "sessions_ended": ended}
    result = "can use other sign-in methods again." if off else f"must now use single sign-on; {ended} sessions ended."
    return store.answer(answer, f"{organisation.name}'s members {result}")
