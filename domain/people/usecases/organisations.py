"""What an organisation's managers set of it: its name, and the API version of requests that name none."""

from collections.abc import Collection

from domain.audit.model import Change
from domain.audit.ports import AuditLog
from domain.kernel.errors import InvalidRequest
from domain.kernel.names import validate_name
from domain.orgs.model import MANAGERS, Organisation
from domain.orgs.ports import OrgStore
from domain.orgs.usecases.service import confirm_role
from ports.unit_of_work import Tx


class OrgSettings:
    """`versions` are those that are served."""

    def __init__(self, versions: Collection[str]) -> None:
        self._versions = tuple(versions)

    async def change(self, tx: Tx, name: str, api_version: str | None) -> Organisation:
        """Set both; None leaves the version to the first request that names one or none. Raises InvalidRequest, PermissionDenied."""
        await confirm_role(tx, MANAGERS, "Only owners and admins change the organisation's settings.")
        wanted = validate_name(name)
        if api_version is not None and api_version not in self._versions:
            raise InvalidRequest.of("api_version", "invalid_value", "There is no such version.")
        before = await tx[OrgStore].own()
        version = api_version or before.api_version
        await tx[OrgStore].change(wanted, version)
        old, new = {"name": before.name, "api_version": before.api_version}, {"name": wanted, "api_version": version}
        changed = [field for field in new if old[field] != new[field]]
        if changed:
            told = {field: old[field] for field in changed if old[field] is not None}
            await tx[AuditLog].add(
                Change("organisation", before.id, "update", told, {field: new[field] for field in changed})
            )
        return await tx[OrgStore].own()
