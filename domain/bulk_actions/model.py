"""Bulk actions: what is done with which products, and the progress."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from domain.jobs.model import NewJob
from domain.kernel.enums import StoredEnum
from domain.kernel.tenancy import Tenant

EXECUTE_BULK_ACTION: Final = "bulk_actions.execute"
"""Kind of the job that executes a bulk action."""
MAX_PRODUCTS = 5_000
"""Maximum number of products of a bulk action."""
MAX_STORED_ACTIONS = 50
"""Number of bulk actions that are stored for an organisation and mode, the newest ones."""


class BulkActionKind(StoredEnum):
    """Actions on products."""

    LIST = "list"
    HIDE = "hide"
    REMATCH = "rematch"


class BulkActionStatus(StoredEnum):
    """State of a bulk action."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkAction:
    """Action of a person on many products.

    Attributes:
        person: The ID of the person, on whose behalf the action is executed.
        products: IDs of the products; empty when the action has ended.
        total: Number of the products.
        position: Number of the products that are done.
        changed: Number of products that the action changed.
        error: The reason of a failure, as a sentence for the person.
    """

    id: str
    person: str
    kind: BulkActionKind
    products: tuple[str, ...]
    total: int
    position: int = 0
    changed: int = 0
    status: BulkActionStatus = BulkActionStatus.QUEUED
    error: str | None = None
    version: int = 1
    created_at: datetime
    updated_at: datetime

    @property
    def is_open(self) -> bool:
        """True until the action has ended."""
        return self.status in (BulkActionStatus.QUEUED, BulkActionStatus.RUNNING)


def create_bulk_action_job(action: BulkAction, tenant: Tenant) -> NewJob:
    """Return the job that executes the action; actions of an organisation are executed one after the other."""
    lane = f"bulk_actions:{'live' if tenant.livemode else 'test'}"
    return NewJob(EXECUTE_BULK_ACTION, lane, tenant, {"action": action.id}, key=action.id)
