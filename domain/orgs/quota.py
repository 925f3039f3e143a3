"""Refusals of what a plan does not include (docs/conventions.md#quotas)."""

from datetime import datetime

from domain.kernel.errors import QuotaExceeded


def until_next_month(now: datetime) -> int:
    """Return the whole seconds until the end of the month of `now` (UTC), at least 1."""
    year, month = (now.year, now.month + 1) if now.month < 12 else (now.year + 1, 1)
    begins = now.replace(year=year, month=month, day=1, hour=0, minute=0, second=0, microsecond=0)
    return max(1, -int(-(begins - now).total_seconds() // 1))


def exceeded(meter: str, detail: str, now: datetime) -> QuotaExceeded:
    """Return the refusal, with the meter and a Retry-After up to the end of the month."""
    return QuotaExceeded(detail, retry_after=until_next_month(now), extra={"meter": meter})
