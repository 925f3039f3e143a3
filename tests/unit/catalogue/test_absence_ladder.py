"""Steps of the absence ladder."""

from datetime import timedelta

import pytest

from domain.catalogue.missed_runs import AbsentProduct, compute_next_status
from domain.catalogue.model import ProductStatus
from tests.support import builders

ACTIVE, PROBABLY, DISCONTINUED = ProductStatus


@pytest.mark.parametrize(
    ("status", "absent", "due"),
    [
        (ACTIVE, timedelta(hours=72) - timedelta(seconds=1), None),
        (ACTIVE, timedelta(hours=72), PROBABLY),
        (ACTIVE, timedelta(days=90), PROBABLY),
        (PROBABLY, timedelta(days=30) - timedelta(seconds=1), None),
        (PROBABLY, timedelta(days=30), DISCONTINUED),
        (DISCONTINUED, timedelta(days=90), None),
    ],
)
def test_next_status(status: ProductStatus, absent: timedelta, due: ProductStatus | None) -> None:
    assert compute_next_status(AbsentProduct("k", status, builders.MOMENT), builders.MOMENT + absent) == due
