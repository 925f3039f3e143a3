"""Holds what was received against what was published: every event once at least, in order, signed, without gaps."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from benchmarks.receiving import Received


@dataclass(slots=True)
class Report:
    """How many deliveries there should be, were, and were repeats; and what was wrong, one line each."""

    expected: int = 0
    received: int = 0
    repeats: int = 0
    missing: int = 0
    unverified: int = 0
    wrong: list[str] = field(default_factory=list)
    """First receipts of a subject out of order, gaps, attempts that overlap, and events that nobody published."""

    @property
    def good(self) -> bool:
        """Whether every promise was kept."""
        return not (self.missing or self.unverified or self.wrong)

    def __str__(self) -> str:
        """One line."""
        told = (
            f"expected {self.expected:,}, received {self.received:,}, repeats {self.repeats:,}, missing {self.missing:,}, "
            f"not verified {self.unverified:,}, out of order or with gaps {len(self.wrong):,}"
        )
        return told + "".join(f"\n    {line}" for line in self.wrong[:5])


def reconcile(wanted: Mapping[str, Collection[str]], received: Sequence[Received]) -> Report:
    """`wanted`: which event ids each endpoint (path) is to receive; `received` in the order of receiving."""
    report, by_endpoint = Report(), dict[str, list[Received]]()
    for one in received:
        by_endpoint.setdefault(one.endpoint, []).append(one)
    for endpoint, ids in wanted.items():
        found = by_endpoint.pop(endpoint, [])
        first = {one.id: one for one in reversed(found)}
        report.expected += len(ids)
        report.received += len(found)
        report.repeats += len(found) - len(first)
        report.missing += len(set(ids) - first.keys())
        report.unverified += sum(not one.verified for one in found)
        report.wrong += [f"{endpoint}: {id} was not published" for id in first.keys() - set(ids)]
        report.wrong += _disorder(endpoint, first.values())
    report.wrong += [f"{endpoint}: not an endpoint of ours" for endpoint in by_endpoint]
    return report


def _disorder(endpoint: str, first: Iterable[Received]) -> list[str]:
    subjects: dict[str, list[Received]] = {}
    for one in sorted(first, key=lambda one: one.received):
        subjects.setdefault(one.subject, []).append(one)
    wrong = []
    for subject, ones in subjects.items():
        for before, after in pairwise(ones):
            if after.version <= before.version or after.previous_version not in (None, before.version):
                wrong.append(
                    f"{endpoint} {subject}: {after.version} (after {after.previous_version}) came after {before.version}"
                )
            elif before.answered is not None and after.received < before.answered:
                wrong.append(f"{endpoint} {subject}: {after.version} came before {before.version} was answered")
    return wrong
