"""The reconciliation detects lost, late, unsigned and overlapping deliveries, gaps and repeats."""

from typing import Any

import pytest

from benchmarks.delivery_reconciliation import reconcile
from benchmarks.feed_readers import NO_ERRORS, SeenEvent, compare_with_table
from benchmarks.receiver_client import ReceivedDelivery

IDS = ["a1", "a2", "a3", "b1"]


def create_delivery(id: str, received: float, **other: Any) -> ReceivedDelivery:
    version = int(id[1])
    values: dict[str, Any] = {
        "endpoint": "/x", "id": id, "type": "offer.changed", "subject": id[0], "version": version,
        "previous_version": version - 1 or None, "cursor": None, "received": received, "answered": received + 0.5,
        "attempt": 1, "verified": [0], "body": None, "headers": None,
    }  # fmt: skip
    return ReceivedDelivery(**values | other)


GOOD = [create_delivery("a1", 1), create_delivery("b1", 1.1), create_delivery("a2", 2), create_delivery("a3", 3)]


def test_complete_deliveries_are_accepted() -> None:
    report = reconcile({"/x": IDS}, GOOD)
    assert report.is_clean and (report.expected, report.received, report.repeats) == (4, 4, 0)


def test_repeats_are_counted_and_allowed() -> None:
    report = reconcile({"/x": IDS}, [*GOOD, create_delivery("a1", 4, attempt=2)])
    assert report.is_clean and report.repeats == 1


@pytest.mark.parametrize(
    "received",
    [
        GOOD[:3],
        [GOOD[0], GOOD[1], GOOD[2], create_delivery("a3", 3, verified=[])],
        [GOOD[0], GOOD[1], create_delivery("a3", 2), create_delivery("a2", 3)],
        [GOOD[0], GOOD[1], create_delivery("a2", 2, previous_version=0), GOOD[3]],
        [GOOD[0], GOOD[1], create_delivery("a2", 1.2), GOOD[3]],
        [*GOOD, create_delivery("c1", 4)],
        [*GOOD, create_delivery("a1", 4, endpoint="/y")],
    ],
    ids=["missing", "unverified", "overtaken", "gap", "overlapping", "unpublished", "foreign endpoint"],
)
def test_each_violation_is_reported(received: list[ReceivedDelivery]) -> None:
    assert not reconcile({"/x": IDS}, received).is_clean


TABLE = [SeenEvent("1", "a", 1), SeenEvent("2", "a", 2), SeenEvent("3", "b", 1)]


@pytest.mark.parametrize(
    ("found", "clean"),
    [
        (TABLE, True),
        ([TABLE[2], *TABLE[:2]], True),
        (TABLE[:2], False),
        ([TABLE[1], TABLE[0], TABLE[2]], False),
        ([*TABLE, TABLE[2]], False),
        ([*TABLE, SeenEvent("4", "b", 2)], False),
    ],
    ids=["as it is", "other subjects' order is free", "missed", "out of order", "again", "unknown"],
)
def test_results_of_readers_are_compared_with_the_table(found: list[SeenEvent], clean: bool) -> None:
    assert compare_with_table(found, TABLE).startswith(NO_ERRORS) is clean
