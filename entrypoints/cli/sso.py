"""Organisations' single sign-on: the provider set up, shown, enforced or removed, and domains proven."""

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

SECRET = "JOINERY_SSO_SECRET"  # noqa: S105  the name of a variable, no secret
NOBODY = "nobody"


async def set_up(
    *,
    issuer: str,
    client_id: str,
    joins_as: Annotated[str, Parameter(choices=[*sorted({*ROLES} - {"owner"}), NOBODY])] = NOBODY,
    keep_secret: bool = False,
    store: OrganisationStore,
) -> int:
    """Set a provider up, or change it; its secret comes from JOINERY_SSO_SECRET or the standard input.

    Args:
        issuer: the provider's issuer
        client_id: what Joinery is registered as there
        joins_as: what whoever signs in first becomes (nobody: nobody joins)
        keep_secret: keep the secret that is kept
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
    return store.answer(answer, f"Set up. Register this redirect address at the provider:\n{redirect_uri}")


def _read_secret() -> str:
    """Read the client's secret from the environment, else a line of the standard input; never from the arguments."""
    secret = read_file_settings(os.environ).get(SECRET) or (
        "" if sys.stdin.isatty() else sys.stdin.readline().rstrip("\r\n")
    )
    if not secret:
        raise CommandError(
            f"Give the client's secret in {SECRET} or on the standard input, or say --keep-secret to keep the one that is kept."
        )
    return secret


async def show(*, store: OrganisationStore) -> int:
    """Show what is set up, and each domain's record."""
    async with store.find() as (parts, organisation):
        async with parts[UnitOfWork].read(Tenant(organisation.id, True)) as tx:
            connection, domains = await tx[SsoStore].connection(), await tx[SsoStore].domains()
        redirect_uri = parts[SsoSignIn].redirect_uri(organisation.id)
    described: dict[str, Any] | None = None
    sentence = f"{organisation.name} has no single sign-on."
    if connection is not None:
        described = attributes(connection, "issuer", "client_id", "joins_as", "enabled", "enforced")
        described["tried_at"] = connection.tried_at.isoformat() if connection.tried_at else None
        state = "enforced" if connection.enforced else "on" if connection.enabled else "off"
        tried = f"{connection.tried_at:%d %B %Y}" if connection.tried_at else "not yet"
        sentence = f"{connection.issuer} as {connection.client_id}: {state}; worked first: {tried}."
    answer = {
        "organisation": organisation.id,
        "redirect_uri": redirect_uri,
        "connection": described,
        "domains": [attributes(one, "domain", "state", "record") for one in domains],
    }
    lines = [f"{one.domain:<32} {one.state:<8} {one.record}" for one in domains]
    return store.answer(answer, sentence, f"Redirect address: {redirect_uri}", *lines)


async def add_domain(domain: str, /, *, store: OrganisationStore) -> int:
    """Name a domain, or look for its record when it is named already."""
    async with store.find() as (parts, organisation):
        found = await _prove(parts, organisation, domain)
    sentences = {
        "proven": f"{found.domain} is proven.",
        "lost": f"The record of {found.domain} is gone.",
        "waiting": f"Add this TXT record to {found.domain}, then run the command again:\n{found.record}",
    }
    answer = {"organisation": organisation.id, **attributes(found, "domain", "state", "record")}
    return store.answer(answer, sentences[found.state])


async def _prove(parts: Dependencies, organisation: Organisation, name: str) -> Domain:
    """Return the domain, named from now on, or after a look for its record."""
    wanted = address_key(name).removeprefix("@").rstrip(".")
    async with parts[UnitOfWork].read(Tenant(organisation.id, True)) as tx:
        known = next((one for one in await tx[SsoStore].domains() if one.domain == wanted), None)
    domain: Domain
    if known is None:
        async with begin(parts, organisation, "sso.add_domain") as tx:
            domain = await parts[SsoSettings].add_domain(tx, name)
        return domain
    there = await parts[DomainProofs].is_there(known)
    if there is None:
        raise CommandError(f"The name servers of {wanted} did not answer; try again.")
    async with begin(parts, organisation, "sso.check_domain") as tx:
        domain = await parts[DomainProofs].keep(tx, wanted, there)
        obliged = await parts[SsoSettings].obliged(tx)
    await parts[SsoRules].barred(organisation.id, obliged)
    return domain


async def remove(*, store: OrganisationStore) -> int:
    """Forget the provider and whom it knows."""
    async with store.change("sso.remove") as (parts, organisation, tx):
        await parts[SsoSettings].remove(tx)
    answer = {"organisation": organisation.id, "removed": True}
    return store.answer(answer, f"{organisation.name} has no single sign-on any more.")


async def enforce(*, off: bool = False, store: OrganisationStore) -> int:
    """Let members of proven domains in by it alone.

    Args:
        off: let them in in other ways again, as when a provider is down
    """
    async with store.find() as (parts, organisation):
        async with begin(parts, organisation, "sso.enforce") as tx:
            await parts[SsoSettings].enforce(tx, not off)
            affected = () if off else await parts[SsoSettings].affected(tx)
        ended = await parts[SsoRules].barred(organisation.id, affected)
    answer = {"organisation": organisation.id, "enforced": not off, "sessions_ended": ended}
    result = "may sign in in other ways again." if off else f"sign in by it alone now; {ended} sessions ended."
    return store.answer(answer, f"{organisation.name}'s people {result}")
