"""When a pushed batch that waits for more parts is given up (docs/conventions.md#pushed-records)."""

from datetime import datetime

from domain.kernel import retention
from domain.kernel.errors import Conflict
from domain.runs.model import PushInput, Run, RunError, RunErrorCode, RunStatus


def waits_for_more(run: Run) -> bool:
    """Whether parts may still be added."""
    return run.status == RunStatus.QUEUED and isinstance(run.input, PushInput) and run.input.open


def expired(run: Run, now: datetime) -> Run:
    """The run, given up: nothing of it was stored."""
    hours = int(retention.OPEN_BATCHES.total_seconds() // 3600)
    message = (
        f"The batch got no further part for {hours} hours and was given up; nothing of it was stored. Push it anew, "
        "from its first part and under another name."
    )
    return run.ended(RunStatus.CANCELLED, now, RunError(RunErrorCode.BATCH_EXPIRED, message))


def refuse_expired(newest: Run | None, now: datetime) -> None:
    """A late part must not become a batch of its own, which would state less than it seems to.

    `newest` is the newest run of the batch's name. Raises Conflict when it expired within the time that a batch is kept.
    """
    error = newest.error if newest else None
    if newest is None or error is None or error.code != RunErrorCode.BATCH_EXPIRED:
        return
    if newest.finished_at is not None and now < newest.finished_at + retention.EXPIRED_BATCHES:
        raise Conflict(f"The batch expired, see {newest.id}; push it anew, from its first part and under another name.")
