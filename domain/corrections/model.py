"""Bulk corrections, filters and audited fields of corrections."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from domain.audit.model import AuditedFields
from domain.catalogue.corrections import Correction
from domain.jobs.model import NewJob
from domain.kernel.enums import StoredEnum
from domain.kernel.paging import Filter
from domain.kernel.tenancy import Tenant

EXECUTE_BATCH = "corrections.execute"
"""Kind of the jobs that execute bulk corrections."""
MAX_PRODUCTS = 5_000
"""Maximum number of products of a bulk correction."""
MAX_PROBLEMS = 200
"""Maximum number of problems that a bulk correction stores."""


class BatchAction(StoredEnum):
    """Actions of bulk corrections on a field.

    ADJUST changes prices by a percentage or an amount. REMOVE removes corrections. REVERSE restores the corrections before another
    bulk correction.
    """

    OVERRIDE = "override"
    LOCK = "lock"
    CLEAR = "clear"
    REMOVE = "remove"
    ADJUST = "adjust"
    REVERSE = "reverse"


class BatchStatus(StoredEnum):
    """States of a bulk correction."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class BatchProblem:
    """Object that a bulk correction did not correct, and a sentence that states the reason."""

    object: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectionBatch:
    """Correction of a field of many products, or of their variants or offers, which a job makes in portions.

    Attributes:
        level: `product`, `variant` or `offer`.
        value: The checked value, or the PriceAdjustment; None for actions without a value.
        products: The IDs of the products, in ascending order.
        undoes: The batch that this one reverses, or None.
        done: Number of processed products.
        changed: Number of changed values.
        unchanged: Number of values that were as requested already.
        error: The reason of a failure, as a sentence for the person.
    """

    id: str
    level: str
    field: str
    action: BatchAction
    value: Any = None
    products: tuple[str, ...]
    undoes: str | None = None
    status: BatchStatus = BatchStatus.QUEUED
    done: int = 0
    changed: int = 0
    unchanged: int = 0
    problems: tuple[BatchProblem, ...] = ()
    error: str | None = None
    made_by: str
    version: int = 1
    created_at: datetime
    updated_at: datetime

    @property
    def is_open(self) -> bool:
        """True if the job has not ended."""
        return self.status in (BatchStatus.QUEUED, BatchStatus.RUNNING)

    @property
    def product_count(self) -> int:
        """The number of products."""
        return len(self.products)


AUDITED_BATCH_FIELDS = AuditedFields("correction_batch", ("level", "field", "action", "product_count", "undoes"))


@dataclass(frozen=True, slots=True)
class CorrectionFilter(Filter):
    """Filter of the list of corrections."""

    field: str | None = None
    made_by: str | None = None
    feed_state: str | None = None
    product: str | None = None


@dataclass(frozen=True, slots=True)
class CorrectionChange:
    """Change of the correction of one field; `before` and `after` are None without a correction.

    `product` is the product of the bulk correction that made the change.
    """

    product: str
    object: str
    field: str
    before: Correction | None
    after: Correction | None


@dataclass(frozen=True, slots=True)
class PreviewedChange:
    """Value of an object before and after a bulk correction, or the reason why it is not corrected."""

    product: str
    object: str
    before: Any
    after: Any
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class BatchPreview:
    """Preview of a bulk correction of the first products: the numbers of changed and unchanged values, and changes."""

    examined_products: int
    changed: int
    unchanged: int
    changes: Sequence[PreviewedChange]


def create_batch_job(batch: CorrectionBatch, tenant: Tenant) -> NewJob:
    """Return the job that executes a batch; batches of one organisation and mode are executed one after the other."""
    return NewJob(EXECUTE_BATCH, f"corrections:{tenant.mode}", tenant, {"batch": batch.id}, key=batch.id)
