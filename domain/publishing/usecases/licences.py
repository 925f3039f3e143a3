"""Use cases of licences: list, grant and revoke."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from domain.audit.model import Change
from domain.audit.ports import AuditLog
from domain.catalogue.licences import (
    EVERYONE,
    FIELD_GROUPS,
    HIDDEN_FIELDS_BY_VIEW,
    NETWORK_GROUPS,
    NETWORK_VIEW,
    Licence,
    find_view,
)
from domain.jobs.ports import JobStore
from domain.kernel.errors import NotFound, Unprocessable
from domain.kernel.json_values import to_json_value
from domain.kernel.suggestions import format_list
from domain.orgs.ports import OrgStore
from domain.publishing.model import create_view_job
from domain.publishing.ports import LicenceStore
from ports.unit_of_work import Tx


async def get_catalogue_id(tx: Tx) -> str:
    """Return the ID of the organisation's catalogue in the transaction's mode."""
    return (await tx[OrgStore].get_organisation()).get_catalogue_id(tx.tenant.livemode)


@dataclass(frozen=True, slots=True)
class LicenceService:
    """Licences to read the tenant's catalogue. The owner's transaction changes them, with effect from the commit."""

    async def list_licences(self, tx: Tx) -> Sequence[Licence]:
        """Return all licences, in the order of their creation."""
        return await tx[LicenceStore].list_licences()

    async def find_publication_time(self, tx: Tx) -> datetime | None:
        """Return when the catalogue was published; None if it is not published."""
        licence = await self._find(tx, EVERYONE)
        return licence.created_at if licence is not None and licence.withdrawn_at is None else None

    async def grant_to_everyone(self, tx: Tx) -> None:
        """Let every organisation read the listed products with NETWORK_GROUPS, unless it already can."""
        if await self.find_publication_time(tx) is None:
            await self._save(tx, EVERYONE, NETWORK_GROUPS, None)

    async def mark_withdrawn(self, tx: Tx) -> None:
        """Mark the catalogue as withdrawn. The licences remain."""
        licence = await self._find(tx, EVERYONE)
        if licence is not None and licence.withdrawn_at is None:
            await tx[LicenceStore].save_licence(replace(licence, withdrawn_at=tx.now))
            before, after = {"withdrawn_at": None}, {"withdrawn_at": to_json_value(tx.now)}
            await tx[AuditLog].add(Change("licence", licence.catalogue, "update", before, after))

    async def grant(self, tx: Tx, holder: str, groups: Collection[str]) -> Licence:
        """Grant an organisation field groups, instead of those that it has been granted before.

        Every licence includes NETWORK_GROUPS. The holder sees further groups of offers in lists and events at once, and in
        products when a job has written their documents.

        Args:
            tx: A transaction of the catalogue's owner.
            holder: The ID of the organisation, which must exist.
            groups: The field groups.

        Raises:
            Unprocessable: A group does not exist, or the holder is the owner.
        """
        if unknown := sorted(set(groups) - {*FIELD_GROUPS}):
            detail = f"There is no field group {format_list(unknown)}. The groups are {format_list(FIELD_GROUPS)}."
            raise Unprocessable.for_field("groups", "invalid_value", detail)
        if holder == tx.tenant.org:
            detail = "An organisation reads its own catalogue without a licence. Name another organisation."
            raise Unprocessable.for_field("holder", "invalid_value", detail)
        before = await self._find(tx, holder)
        return await self._save(tx, holder, NETWORK_GROUPS | set(groups), before)

    async def revoke(self, tx: Tx, holder: str) -> None:
        """Revoke the licence of an organisation, with effect from the commit. Raises NotFound."""
        licence = await self._find(tx, holder)
        if licence is None:
            raise NotFound("There is no such licence.")
        await tx[LicenceStore].delete_licence(licence.catalogue, holder)
        before = {"holder": holder, "groups": sorted(licence.groups)}
        await tx[AuditLog].add(Change("licence", licence.catalogue, "delete", before, {}))

    async def _find(self, tx: Tx, holder: str) -> Licence | None:
        return next((licence for licence in await tx[LicenceStore].list_licences() if licence.holder == holder), None)

    async def _save(self, tx: Tx, holder: str, groups: Collection[str], before: Licence | None) -> Licence:
        catalogue = await get_catalogue_id(tx)
        wanted, hidden = find_view(groups), HIDDEN_FIELDS_BY_VIEW[find_view(groups)]
        written = {NETWORK_VIEW, *(licence.view for licence in await tx[LicenceStore].list_licences())}
        permitted = [view for view in written if HIDDEN_FIELDS_BY_VIEW[view] >= hidden]
        view = min(permitted, key=lambda view: (len(HIDDEN_FIELDS_BY_VIEW[view]), view))
        licence = Licence(catalogue, holder, frozenset(groups), view, before.created_at if before else tx.now)
        await tx[LicenceStore].save_licence(licence)
        if wanted != view:
            await tx[JobStore].add(create_view_job(wanted, tx.tenant))
        values = {"holder": holder, "groups": sorted(licence.groups)}
        change = (
            ("update", {"groups": sorted(before.groups)}, {"groups": values["groups"]})
            if before
            else ("create", {}, values)
        )
        await tx[AuditLog].add(Change("licence", catalogue, *change))
        return licence
