"""Creating and reading exports, with links to their files."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from domain.audit.ports import AuditLog
from domain.exports.model import (
    AUDITED,
    LINK_LIFETIME,
    OPEN_EXPORTS,
    Export,
    ExportFile,
    ExportFilters,
    ExportKind,
    ExportStatus,
    NewExport,
    job_of,
)
from domain.exports.ports import Datasets, ExportStore
from domain.exports.usecases.metering import refuse_spent
from domain.jobs.ports import JobStore
from domain.kernel.errors import (
    Conflict,
    FeatureUnavailable,
    InsufficientScope,
    PermissionDenied,
    Unprocessable,
)
from domain.kernel.ids import new_id
from domain.kernel.links import link_expiry
from domain.kernel.paging import Page, PageRequest
from domain.kernel.resource import existing
from domain.orgs.model import Plan
from ports.objects import Objects
from ports.unit_of_work import Tx

FEATURE = "bulk_exports"
_READ_PRODUCTS = "products:read"


@dataclass(frozen=True, slots=True)
class Asking:
    """The organisation's plan and the credential's scopes of a request for an export."""

    plan: Plan
    scopes: frozenset[str]


@dataclass(frozen=True, slots=True)
class LinkedExport:
    """An export and the download URLs of its files, in their order."""

    export: Export
    urls: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """The export's id."""
        return self.export.id


@dataclass(frozen=True, slots=True)
class ExportService:
    """Exports of one tenant."""

    objects: Objects
    datasets: Datasets

    async def list_exports(self, tx: Tx, page_request: PageRequest, scopes: frozenset[str]) -> Page[LinkedExport]:
        """Return the tenant's exports, newest first, with links to those that these scopes may read."""
        page = await tx[ExportStore].page(page_request)
        items = [await self.linked(export, tx.now, scopes) for export in page.items]
        return Page(tuple(items), page.has_more, page.next_key)

    async def get(self, tx: Tx, id: str, scopes: frozenset[str]) -> LinkedExport:
        """Return an export, with links if these scopes may read it. Raises NotFound."""
        export = existing(await tx[ExportStore].get(id))
        return await self.linked(export, tx.now, scopes)

    async def create(self, tx: Tx, new: NewExport, asking: Asking) -> LinkedExport:
        """Queue an export.

        Raises:
            PermissionDenied: An export of products without products:read.
            FeatureUnavailable, QuotaExceeded: The plan does not include an export of products.
            InsufficientScope, Unprocessable: An export of the organisation lacks scopes, or has filters.
            Conflict: OPEN_EXPORTS are pending or running.
        """
        kind = new["kind"]
        filters = ExportFilters(**new.get("filters", {}))
        if kind == ExportKind.ORGANISATION:
            _refuse_missing(self.datasets.scopes - asking.scopes)
            if filters != ExportFilters():
                detail = "An export of the whole organisation takes no filters. Leave them out, or export the products."
                raise Unprocessable.of("filters", "invalid_value", detail)
        else:
            _refuse_products(asking)
            await refuse_spent(tx)
        await tx[ExportStore].take_turns()
        if await tx[ExportStore].open() >= OPEN_EXPORTS:
            raise Conflict(
                f"{OPEN_EXPORTS} exports are pending or running, the maximum in a mode. Wait until one has ended."
            )
        export = Export(new_id("exp"), kind, ExportStatus.PENDING, tx.now, filters)
        await tx[ExportStore].add(export)
        await tx[AuditLog].add(AUDITED.created(export))
        await tx[JobStore].add(job_of(export, tx.tenant))
        return LinkedExport(export)

    async def linked(self, export: Export, now: datetime, scopes: frozenset[str]) -> LinkedExport:
        """Return the export with links that expire with its files at the latest.

        Scopes that do not permit reading the contents get no links, since a link needs no credential.
        """
        needed = self.datasets.scopes if export.kind == ExportKind.ORGANISATION else {_READ_PRODUCTS}
        if export.status != ExportStatus.SUCCEEDED or not needed <= scopes:
            return LinkedExport(export)
        until = link_expiry(now, LINK_LIFETIME)
        if export.expires_at is not None:
            until = min(until, export.expires_at)
        return LinkedExport(export, tuple([await self._link(export, file, until) for file in export.files]))

    async def _link(self, export: Export, file: ExportFile, until: datetime) -> str:
        name = f"{export.id}-{file.dataset}.jsonl.gz"
        return await self.objects.sign_get(file.key, filename=name, expires_at=until)


def _refuse_products(asking: Asking) -> None:
    if _READ_PRODUCTS not in asking.scopes:
        raise PermissionDenied(
            f"Your credential lacks the scope {_READ_PRODUCTS}, which an export of products needs beside exports:write."
        )
    if FEATURE not in asking.plan.features:
        raise FeatureUnavailable(
            f"Your organisation's plan ({asking.plan.code}) does not include {FEATURE}. Read GET /v1/products page by page, or "
            "ask the operator for a larger plan."
        )


def _refuse_missing(scopes: Collection[str]) -> None:
    if scopes:
        listed = ", ".join(sorted(scopes))
        raise InsufficientScope(
            f"An export of the organisation needs every dataset's scope; your credential lacks {listed}."
        )
