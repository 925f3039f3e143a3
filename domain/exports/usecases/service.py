"""Use cases of exports: creating and reading them, with links to their files."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from domain.audit.ports import AuditLog
from domain.catalogue.model import ProductFilter
from domain.catalogue.usecases.service import validate_filter
from domain.exports.columns import COLUMNS
from domain.exports.layout import FILE_EXTENSIONS, ExportFormat, ExportLayout
from domain.exports.model import (
    AUDITED,
    LINK_LIFETIME,
    MAX_OPEN_EXPORTS,
    OMITTED_ITEMS,
    PRODUCTS,
    Export,
    ExportFile,
    ExportKind,
    ExportStatus,
    NewExport,
    create_export_job,
)
from domain.exports.ports import Datasets, ExportStore
from domain.exports.templates import find_template_error
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
            Unprocessable: An export of the organisation has filters or a layout, or a layout is contradictory.
            Conflict: MAX_OPEN_EXPORTS are pending or running.
        """
        filters, layout = ProductFilter(**new.get("filters", {})), build_layout(new)
        if new["kind"] == ExportKind.ORGANISATION:
            _refuse_missing_scopes(self.datasets.scopes - requester.scopes)
            if filters != ProductFilter():
                detail = (
                    "An export of the whole organisation does not accept filters. Omit the filters, or export products."
                )
                raise Unprocessable.for_field("filters", "invalid_value", detail)
            if layout != ExportLayout():
                detail = (
                    "An export of the whole organisation has the format jsonl. Omit the format, or export products."
                )
                raise Unprocessable.for_field("format", "invalid_value", detail)
        return await create_export(tx, new["kind"], filters, layout, requester)

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
        name = f"{export.id}-{file.dataset}.{find_extension(export.layout, file.dataset)}"
        return await self.objects.sign_get(file.key, filename=name, expires_at=until)


async def create_export(
    tx: Tx,
    kind: ExportKind,
    filters: ProductFilter,
    layout: ExportLayout,
    requester: ExportRequester,
    schedule: str | None = None,
) -> LinkedExport:
    """Create an export, with the ID of the scheduled export that requires it or None.

    Raises the errors of `ExportService.create`.
    """
    if kind == ExportKind.PRODUCTS:
        check_product_export(requester)
        validate_view(filters, layout)
        await require_remaining_quota(tx)
    await tx[ExportStore].lock_creation()
    if await tx[ExportStore].count_open() >= MAX_OPEN_EXPORTS:
        raise Conflict(
            f"{MAX_OPEN_EXPORTS} exports are pending or running, the maximum per mode. Wait until one has ended."
        )
    export = Export(new_id("exp"), kind, ExportStatus.PENDING, tx.now, filters, layout, schedule)
    await tx[ExportStore].add(export)
    await tx[AuditLog].add(AUDITED.describe_creation(export))
    await tx[JobStore].add(create_export_job(export, tx.tenant))
    return LinkedExport(export)


def find_extension(layout: ExportLayout, dataset: str) -> str:
    """Return the extension of the name of a dataset's file."""
    if dataset == PRODUCTS:
        return FILE_EXTENSIONS[layout.format]
    return "csv" if dataset == OMITTED_ITEMS else FILE_EXTENSIONS[ExportFormat.JSONL]


def build_layout(new: NewExport) -> ExportLayout:
    """Return the layout that a request describes."""
    names = ("format", "columns", "locale", "row_by", "units", "sort", "link_template")
    return ExportLayout(**{name: value for name in names if (value := new.get(name)) is not None})  # type: ignore[arg-type]


def validate_view(filters: ProductFilter, layout: ExportLayout) -> None:
    """Raise Unprocessable or InvalidRequest unless filters and layout of an export of products are valid."""
    validate_filter(filters)
    if layout.columns and not layout.is_table:
        raise Unprocessable.for_field(
            "columns", "invalid_value", f"The format {layout.format} has no choice of columns. Omit the columns."
        )
    if unknown := [name for name in layout.columns if name not in COLUMNS]:
        raise Unprocessable.for_field(
            "columns", "invalid_value", f"{unknown[0][:100]} is not a column. Columns are {', '.join(COLUMNS)}."
        )
    if layout.format != ExportFormat.GOOGLE_MERCHANT_XML:
        return
    if layout.link_template is None:
        raise Unprocessable.for_field(
            "link_template",
            "required",
            "Enter the address of a product's page in your shop, such as https://shop.example/products/{handle}.",
        )
    if error := find_template_error(layout.link_template):
        raise Unprocessable.for_field("link_template", "invalid_value", error)


def check_product_export(requester: ExportRequester) -> None:
    """Raise PermissionDenied or FeatureUnavailable unless the caller may export products."""
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
