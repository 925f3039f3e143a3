"""What operators do about single sign-on: set it up, show it, enforce it or not, remove it; prove domains."""

import argparse
import os
import sys
from typing import Any, Final

from domain.kernel.mail_addresses import address_key
from domain.kernel.tenancy import Tenant
from domain.orgs.model import Organisation
from domain.sso.model import Connection, Domain
from domain.sso.ports import ProviderFault, SsoStore
from domain.sso.usecases.settings import Wanted
from entrypoints.cli.errors import CommandError
from entrypoints.cli.orgs import answered, container, found_organisation, operator_call
from entrypoints.container import Container
from entrypoints.settings import read_file_settings

SECRET: Final = "JOINERY_SSO_SECRET"  # noqa: S105  the name of a variable, no secret


async def set_up(options: argparse.Namespace) -> int:
    """`joinery sso set`. The client's secret comes from JOINERY_SSO_SECRET or the standard input, never from the arguments."""
    secret = _secret(options)
    async with container(options) as parts:
        organisation = await found_organisation(parts, options.org)
        try:
            issuer = await parts.assembled().sso.providers.issuer(options.issuer)
        except ProviderFault as error:
            raise CommandError(str(error)) from error
        wanted = Wanted(issuer, options.client_id, secret, None if options.joins_as == "nobody" else options.joins_as)
        async with parts.uow().begin(Tenant(organisation.id, True), operator_call("sso.set")) as tx:
            await parts.assembled().sso.settings.set(tx, wanted)
        redirect_uri = parts.assembled().sso.sign_in.redirect_uri(organisation.id)
    answer = {"organisation": organisation.id, "issuer": issuer, "redirect_uri": redirect_uri}
    return answered(options, answer, f"Set up. Register this redirect address at the provider:\n{redirect_uri}")


async def show(options: argparse.Namespace) -> int:
    """`joinery sso show`."""
    async with container(options) as parts:
        organisation = await found_organisation(parts, options.org)
        async with parts.uow().read(Tenant(organisation.id, True)) as tx:
            connection, domains = await tx[SsoStore].connection(), await tx[SsoStore].domains()
        redirect_uri = parts.assembled().sso.sign_in.redirect_uri(organisation.id)
    answer = {
        "organisation": organisation.id,
        "redirect_uri": redirect_uri,
        "connection": _plain(connection) if connection else None,
        "domains": [{"domain": one.domain, "state": one.state, "record": one.record} for one in domains],
    }
    return answered(options, answer, _told(organisation, connection, domains, redirect_uri))


async def add_domain(options: argparse.Namespace) -> int:
    """`joinery sso domain`: name a domain, or look for its record when it is named already."""
    async with container(options) as parts:
        organisation = await found_organisation(parts, options.org)
        domain = await _looked(parts, organisation, options.domain)
    told = {
        "proven": f"{domain.domain} is proven.",
        "lost": f"The record of {domain.domain} is gone.",
        "waiting": f"Add this TXT record to {domain.domain}, then run the command again:\n{domain.record}",
    }
    answer = {"organisation": organisation.id, "domain": domain.domain, "state": domain.state, "record": domain.record}
    return answered(options, answer, told[domain.state])


async def remove(options: argparse.Namespace) -> int:
    """`joinery sso remove`."""
    async with container(options) as parts:
        organisation = await found_organisation(parts, options.org)
        async with parts.uow().begin(Tenant(organisation.id, True), operator_call("sso.remove")) as tx:
            await parts.assembled().sso.settings.remove(tx)
    answer = {"organisation": organisation.id, "removed": True}
    return answered(options, answer, f"{organisation.name} has no single sign-on any more.")


async def enforce(options: argparse.Namespace) -> int:
    """`joinery sso enforce`; `--off` lets people in in other ways again, as when a provider is down."""
    async with container(options) as parts:
        organisation = await found_organisation(parts, options.org)
        sso = parts.assembled().sso
        async with parts.uow().begin(Tenant(organisation.id, True), operator_call("sso.enforce")) as tx:
            await sso.settings.enforce(tx, not options.off)
            affected = () if options.off else await sso.settings.affected(tx)
        ended = await sso.rules.barred(organisation.id, affected)
    answer = {"organisation": organisation.id, "enforced": not options.off, "sessions_ended": ended}
    told = "may sign in in other ways again." if options.off else f"sign in by it alone now; {ended} sessions ended."
    return answered(options, answer, f"{organisation.name}'s people {told}")


async def _looked(parts: Container, organisation: Organisation, name: str) -> Domain:
    """The domain, named from now on, or once its record was looked for."""
    sso, tenant = parts.assembled().sso, Tenant(organisation.id, True)
    wanted = address_key(name).removeprefix("@").rstrip(".")
    async with parts.uow().read(tenant) as tx:
        known = next((one for one in await tx[SsoStore].domains() if one.domain == wanted), None)
    if known is None:
        async with parts.uow().begin(tenant, operator_call("sso.add_domain")) as tx:
            return await sso.settings.add_domain(tx, name)
    there = await sso.proofs.is_there(known)
    if there is None:
        raise CommandError(f"The name servers of {wanted} did not answer; try again.")
    async with parts.uow().begin(tenant, operator_call("sso.check_domain")) as tx:
        kept = await sso.proofs.keep(tx, wanted, there)
        obliged = await sso.settings.obliged(tx)
    await sso.rules.barred(organisation.id, obliged)
    return kept


def _secret(options: argparse.Namespace) -> str | None:
    """The client's secret: from the environment, else a line of the standard input; None to keep the one that is kept."""
    if options.keep_secret:
        return None
    given = read_file_settings(os.environ).get(SECRET, "") or (
        "" if sys.stdin.isatty() else sys.stdin.readline().rstrip("\r\n")
    )
    if not given:
        raise CommandError(
            f"Give the client's secret in {SECRET} or on the standard input, or say --keep-secret to keep the one that is kept."
        )
    return given


def _plain(connection: Connection) -> dict[str, Any]:
    return {
        "issuer": connection.issuer,
        "client_id": connection.client_id,
        "joins_as": connection.joins_as,
        "enabled": connection.enabled,
        "enforced": connection.enforced,
        "tried_at": connection.tried_at.isoformat() if connection.tried_at else None,
    }


def _told(organisation: Organisation, connection: Connection | None, domains: Any, redirect_uri: str) -> str:
    lines = [f"Redirect address: {redirect_uri}"]
    if connection is None:
        lines.insert(0, f"{organisation.name} has no single sign-on.")
    else:
        state = "enforced" if connection.enforced else "on" if connection.enabled else "off"
        tried = f"{connection.tried_at:%d %B %Y}" if connection.tried_at else "not yet"
        lines.insert(0, f"{connection.issuer} as {connection.client_id}: {state}; worked first: {tried}.")
    lines += [f"{one.domain:<32} {one.state:<8} {one.record}" for one in domains]
    return "\n".join(lines)
