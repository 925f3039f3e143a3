"""Retry-After with invalid dates."""

from datetime import UTC, datetime

import pytest

from adapters.http.host_rate_limiter import _parse_retry_after
from connectors.sdk.responses import parse_retry_after
from domain.webhooks import model as webhooks

NOW = datetime(2026, 11, 22, tzinfo=UTC)
INVALID_DATES = [
    "Mon, 01 Jan 99999999999999999999 00:00:00 GMT",
    "Mon, 01 Jan 2024 00:00:00 +99999999999999999999",
    "soon",
]


@pytest.mark.parametrize("value", INVALID_DATES)
def test_invalid_dates_are_ignored(value: str) -> None:
    """The rate limiter, the connector SDK and webhook endpoints ignore the date."""
    assert _parse_retry_after(value) == 0.0
    assert parse_retry_after({"Retry-After": value}, NOW) is None
    assert webhooks.parse_retry_after(value, NOW) is None
