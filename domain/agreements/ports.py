"""Ports of agreements: acceptances of a tenant, and versions for operators."""

from collections.abc import Sequence
from typing import Protocol

from domain.agreements.model import Agreement, AgreementAcceptance, AgreementKind
from domain.kernel.paging import Page, PageRequest


class AgreementStore(Protocol):
    """Versions of agreements, which a tenant can only read, and storage of the tenant's acceptances."""

    async def get_newest(self, kind: AgreementKind) -> Agreement | None:
        """Return the newest version of the agreement, or None if none is published."""
        ...

    async def find_version(self, kind: AgreementKind, version: int) -> Agreement | None:
        """Return a version of the agreement, or None."""
        ...

    async def find_newest_acceptance(self, kind: AgreementKind, *, lock: bool = False) -> AgreementAcceptance | None:
        """Return the tenant's acceptance of the highest version, or None.

        With `lock`, other such calls of the tenant wait until the transaction ends.
        """
        ...

    async def add(self, row: AgreementAcceptance) -> None:
        """Store an acceptance. Raises Conflict if the tenant has already accepted the version."""
        ...

    async def page(self, request: PageRequest) -> Page[AgreementAcceptance]:
        """Return a page of the tenant's acceptances, newest first."""
        ...


class AgreementRegistry(Protocol):
    """Storage of the versions of agreements, for operators."""

    async def get_newest(self, kind: AgreementKind) -> Agreement | None:
        """Return the newest version of the agreement, or None if none is published."""
        ...

    async def list_versions(self) -> Sequence[Agreement]:
        """Return all versions of all agreements, by kind, the newest version first."""
        ...

    async def publish(self, agreement: Agreement) -> bool:
        """Store a new version; return False, without storing it, if a version with this number exists."""
        ...
