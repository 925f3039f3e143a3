"""Use cases of exports: creating and reading them, with links to their files."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from domain.audit.ports import AuditLog
from domain.exports.model import (
    AUDITED,
    LINK_LIFETIME,
    MAX_OPEN_EXPORTS,
    Export,
    ExportFile,
    ExportFilters,
    ExportKind,
    ExportStatus,
    NewExport,
    create_export_job,
)
from domain.exports.ports import Datasets, ExportStore
from domain.exports.usecases.metering import require_remaining_quota
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
from domain.kernel.resource import require_found
from domain.orgs.model import Plan
from ports.objects import ObjectStore
from ports.unit_of_work import Tx

FEATURE = "bulk_exports"
_READ_PRODUCTS = "products:read"


@dataclass(frozen=True, slots=True)
class ExportRequester:
    """Caller of a request for an export: the organisation's plan, and the credential's scopes."""

    plan: Plan
    scopes: frozenset[str]


@dataclass(frozen=True, slots=True)
class LinkedExport:
    """Export and the download URLs of its files, in the same order."""

    export: Export
    urls: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """The export's ID."""
        return self.export.id


@dataclass(frozen=True, slots=True)
class ExportService:
    """Use cases of a tenant's exports."""

    objects: ObjectStore
    datasets: Datasets

    async def list_exports(self, tx: Tx, page_request: PageRequest, scopes: frozenset[str]) -> Page[LinkedExport]:
        """Return a page of the tenant's exports, newest first, with links to files that the scopes permit reading."""
        page = await tx[ExportStore].page(page_request)
        items = [await self.add_links(export, tx.now, scopes) for export in page.items]
        return Page(tuple(items), page.has_more, page.next_key)

    async def get(self, tx: Tx, id: str, scopes: frozenset[str]) -> LinkedExport:
        """Return an export, with links if the scopes permit reading it. Raises NotFound."""
        export = require_found(await tx[ExportStore].get(id))
        return await self.add_links(export, tx.now, scopes)

    async def create(self, tx: Tx, new: NewExport, requester: ExportRequester) -> LinkedExport:
        """Create an export and queue the job that writes it.

        Raises:
            PermissionDenied: An export of products without products:read.
            FeatureUnavailable, QuotaExceeded: The plan does not include an export of products.
            InsufficientScope: Scopes for an export of the organisation are missing.
            Unprocessable: An export of the organisation has filters.
            Conflict: MAX_OPEN_EXPORTS are pending or running.
        """
        kind = new["kind"]
        filters = ExportFilters(**new.get("filters", {}))
        if kind == ExportKind.ORGANISATION:
            _refuse_missing_scopes(self.datasets.scopes - requester.scopes)
            if filters != ExportFilters():
                detail = (
                    "An export of the whole organisation does not accept filters. Omit the filters, or export products."
                )
                raise Unprocessable.for_field("filters", "invalid_value", detail)
        else:
            _check_product_export(requester)
            await require_remaining_quota(tx)
        await tx[ExportStore].lock_creation()
        if await tx[ExportStore].count_open() >= MAX_OPEN_EXPORTS:
            raise Conflict(
                f"{MAX_OPEN_EXPORTS} exports are pending or running, the maximum per mode. Wait until one has ended."
            )
        export = Export(new_id("exp"), kind, ExportStatus.PENDING, tx.now, filters)
        await tx[ExportStore].add(export)
        await tx[AuditLog].add(AUDITED.describe_creation(export))
        await tx[JobStore].add(create_export_job(export, tx.tenant))
        return LinkedExport(export)

    async def add_links(self, export: Export, now: datetime, scopes: frozenset[str]) -> LinkedExport:
        """Return the export with links to its files; no link outlives the files.

        There are no links if the scopes do not permit reading the files, because a link needs no credential.
        """
        needed = self.datasets.scopes if export.kind == ExportKind.ORGANISATION else {_READ_PRODUCTS}
        if export.status != ExportStatus.SUCCEEDED or not needed <= scopes:
            return LinkedExport(export)
        until = link_expiry(now, LINK_LIFETIME)
        if export.expires_at is not None:
            until = min(until, export.expires_at)
        return LinkedExport(export, tuple([await self._sign_link(export, file, until) for file in export.files]))

    async def _sign_link(self, export: Export, file: ExportFile, until: datetime) -> str:
        name = f"{export.id}-{file.dataset}.jsonl.gz"
        return await self.objects.sign_get(file.key, filename=name, expires_at=until)


def _check_product_export(requester: ExportRequester) -> None:
    if _READ_PRODUCTS not in requester.scopes:
        raise PermissionDenied(
            f"Your credential lacks the scope {_READ_PRODUCTS}, which an export of products requires in addition to "
            f"exports:write."
        )
    if FEATURE not in requester.plan.features:
        raise FeatureUnavailable(
            f"Your organisation's plan ({requester.plan.code}) does not include {FEATURE}. Read GET /v1/products "
            f"page by page, or ask the operator to change the plan."
        )


def _refuse_missing_scopes(scopes: Collection[str]) -> None:
    if scopes:
        listed = ", ".join(sorted(scopes))
        raise InsufficientScope(
            f"An export of the organisation requires the scopes of all datasets. Your credential lacks {listed}."
        )
