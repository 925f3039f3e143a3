"""Number of deliveries after events are combined."""

from datetime import timedelta

import pytest

from domain.webhooks.payload import count_deliveries
from tests.support.builders import MOMENT


def _get_time(seconds: float) -> object:
    return MOMENT + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("window", "steps", "expected"),
    [
        (0, [("offer.changed", 0), ("offer.changed", 0)], 2),
        (10, [], 0),
        (10, [("offer.changed", 0), ("offer.changed", 9.9)], 1),
        (10, [("offer.changed", 0), ("offer.changed", 10)], 2),
        (10, [("offer.changed", second) for second in (0, 6, 12, 18, 24)], 3),
        (10, [("offer.created", 0), ("offer.changed", 1), ("offer.changed", 2)], 1),
        (10, [("product.updated", 0), ("product.discontinued", 1), ("product.updated", 2)], 3),
        (10, [("product.updated", 0), ("product.discontinued", 1), ("product.updated", 2), ("product.updated", 9)], 3),
        (10, [("source.degraded", 0), ("source.recovered", 1)], 2),
    ],
)
def test_events_of_one_subject_are_combined(window: int, steps: list[tuple[str, float]], expected: int) -> None:
    assert count_deliveries([("x_1", type, _get_time(second)) for type, second in steps], window) == expected  # type: ignore[misc]


def test_subjects_do_not_combine() -> None:
    events = [(subject, "offer.changed", MOMENT) for subject in ("a", "a", "b", "c", "c", "c")]
    assert count_deliveries(events, 5) == 3
