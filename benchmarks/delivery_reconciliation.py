"""Comparison of received with published events: at least once, in order, without gaps, and with valid signatures."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from benchmarks.receiver_client import ReceivedDelivery


@dataclass(slots=True)
class ReconciliationReport:
    """Result of the comparison.

    Attributes:
        expected: Number of expected deliveries.
        received: Number of received deliveries.
        repeats: Number of repeated deliveries.
        missing: Number of events that were not received.
        unverified: Number of deliveries without a valid signature.
        errors: Descriptions of events out of order, gaps, overlapping attempts, and deliveries that were never
            published.
    """

    expected: int = 0
    received: int = 0
    repeats: int = 0
    missing: int = 0
    unverified: int = 0
    errors: list[str] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        """Whether nothing is missing, unverified or wrong."""
        return not (self.missing or self.unverified or self.errors)

    def __str__(self) -> str:
        """Return the numbers in one line, and the first five errors."""
        summary = (
            f"expected {self.expected:,}, received {self.received:,}, repeats {self.repeats:,}, missing {self.missing:,}, "
            f"not verified {self.unverified:,}, out of order or with gaps {len(self.errors):,}"
        )
        return summary + "".join(f"\n    {error}" for error in self.errors[:5])


def reconcile(
    expected_ids: Mapping[str, Collection[str]], received: Sequence[ReceivedDelivery]
) -> ReconciliationReport:
    """Compare the expected events with the received deliveries.

    Args:
        expected_ids: IDs of the expected events, by path of the endpoint.
        received: Deliveries in the order of their receipt.
    """
    report, deliveries_by_endpoint = ReconciliationReport(), dict[str, list[ReceivedDelivery]]()
    for delivery in received:
        deliveries_by_endpoint.setdefault(delivery.endpoint, []).append(delivery)
    for endpoint, ids in expected_ids.items():
        deliveries = deliveries_by_endpoint.pop(endpoint, [])
        first_deliveries = {delivery.id: delivery for delivery in reversed(deliveries)}
        report.expected += len(ids)
        report.received += len(deliveries)
        report.repeats += len(deliveries) - len(first_deliveries)
        report.missing += len(set(ids) - first_deliveries.keys())
        report.unverified += sum(not delivery.verified for delivery in deliveries)
        report.errors += [f"{endpoint}: {id} was not published" for id in first_deliveries.keys() - set(ids)]
        report.errors += _find_order_errors(endpoint, first_deliveries.values())
    report.errors += [f"{endpoint}: unknown endpoint" for endpoint in deliveries_by_endpoint]
    return report


def _find_order_errors(endpoint: str, first_deliveries: Iterable[ReceivedDelivery]) -> list[str]:
    deliveries_by_subject: dict[str, list[ReceivedDelivery]] = {}
    for delivery in sorted(first_deliveries, key=lambda delivery: delivery.received):
        deliveries_by_subject.setdefault(delivery.subject, []).append(delivery)
    errors = []
    for subject, deliveries in deliveries_by_subject.items():
        for before, after in pairwise(deliveries):
            if after.version <= before.version or after.previous_version not in (None, before.version):
                errors.append(
                    f"{endpoint} {subject}: {after.version} (after {after.previous_version}) came after {before.version}"
                )
            elif before.answered is not None and after.received < before.answered:
                errors.append(f"{endpoint} {subject}: {after.version} came before {before.version} was answered")
    return errors
