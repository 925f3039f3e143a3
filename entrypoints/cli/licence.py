"""Commands for licences: which organisations read a published catalogue, and with which fields."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from domain.catalogue.licences import EVERYONE, FIELD_GROUPS, Licence
from domain.kernel.errors import DomainError
from domain.orgs.ports import OrgRegistry
from domain.publishing.usecases.licences import LicenceService
from entrypoints.cli.store import DEFAULT_OPTIONS, CommandOptions, find_organisation
from entrypoints.dependencies import Dependencies
from entrypoints.errors import CommandError
from entrypoints.provisioning import begin_operator_change
from ports.unit_of_work import Tx


async def grant(
    *, catalogue: str, org: str, groups: str = ",".join(FIELD_GROUPS), options: CommandOptions = DEFAULT_OPTIONS
) -> int:
    """Grant an organisation a licence, instead of the one that it has.

    Args:
        catalogue: ID of the vendor's catalogue (`cat_…`).
        org: ID or unique name of the organisation that may read it.
        groups: Comma-separated field groups of offers: base, stock, retail, trade. Every licence includes base and retail.
    """
    async with _begin_change(options, catalogue, "licences.grant") as (dependencies, tx):
        holder = await find_organisation(dependencies, org)
        try:
            licence = await LicenceService().grant(tx, holder.id, list(filter(None, groups.split(","))))
        except DomainError as error:
            raise CommandError(str(error)) from error
    result = _build_licence_json(licence)
    return options.print_result(result, f"{holder.name} reads {catalogue} with {', '.join(result['groups'])}.")


async def revoke(*, catalogue: str, org: str, options: CommandOptions = DEFAULT_OPTIONS) -> int:
    """Revoke an organisation's licence immediately. It still reads what every organisation reads.

    Args:
        catalogue: ID of the vendor's catalogue (`cat_…`).
        org: ID or unique name of the organisation.
    """
    async with _begin_change(options, catalogue, "licences.revoke") as (dependencies, tx):
        holder = await find_organisation(dependencies, org)
        try:
            await LicenceService().revoke(tx, holder.id)
        except DomainError as error:
            raise CommandError(f"{holder.name} has no licence for {catalogue}.") from error
    return options.print_result({"catalogue": catalogue, "holder": holder.id}, f"Revoked the licence of {holder.name}.")


async def list_all(*, catalogue: str, options: CommandOptions = DEFAULT_OPTIONS) -> int:
    """List the licences of a catalogue.

    Args:
        catalogue: ID of the vendor's catalogue (`cat_…`).
    """
    async with _begin_change(options, catalogue, "licences.list") as (_, tx):
        licences = [_build_licence_json(licence) for licence in await LicenceService().list_licences(tx)]
    names = {EVERYONE: "every organisation"}
    lines = [
        f"{names.get(row['holder'], row['holder']):<26}  {', '.join(row['groups'])}{' (withdrawn)' if row['withdrawn'] else ''}"
        for row in licences
    ]
    return options.print_result({"licences": licences}, *lines or ["No licences: the catalogue is not published."])


def _build_licence_json(licence: Licence) -> dict[str, Any]:
    groups = [group for group in FIELD_GROUPS if group in licence.groups]
    return {
        "catalogue": licence.catalogue,
        "holder": licence.holder,
        "groups": groups,
        "withdrawn": licence.withdrawn_at is not None,
    }


@asynccontextmanager
async def _begin_change(
    options: CommandOptions, catalogue: str, operation: str
) -> AsyncIterator[tuple[Dependencies, Tx]]:
    """Begin a change of the catalogue's owner by the operator. Raises CommandError if the catalogue does not exist."""
    async with options.open_dependencies() as dependencies:
        owner = await dependencies[OrgRegistry].find_by_catalogue(catalogue)
        if owner is None:
            raise CommandError(f"There is no catalogue {catalogue!r}. `joinery org create` prints the catalogues.")
        is_live = owner.get_catalogue_id(True) == catalogue
        async with begin_operator_change(dependencies, owner, operation, livemode=is_live) as tx:
            yield dependencies, tx
