"""Errors for exceeded quotas of a plan (docs/conventions.md#quotas)."""

from datetime import datetime

from domain.kernel.errors import QuotaExceeded


def count_seconds_to_next_month(now: datetime) -> int:
    """Return the number of seconds from `now` until the next month (UTC), rounded up, at least 1."""
    year, month = (now.year, now.month + 1) if now.month < 12 else (now.year + 1, 1)
    begins = now.replace(year=year, month=month, day=1, hour=0, minute=0, second=0, microsecond=0)
    return max(1, -int(-(begins - now).total_seconds() // 1))


def build_quota_error(meter: str, detail: str, now: datetime) -> QuotaExceeded:
    """Return the error for an exhausted quota, with the name of the meter and a Retry-After until the next month."""
    return QuotaExceeded(detail, retry_after=count_seconds_to_next_month(now), extra={"meter": meter})
