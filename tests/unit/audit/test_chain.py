"""Detection of tampering with a chain of audit entries (domain/audit/chain.py)."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from domain.audit.chain import (
    GENESIS,
    ChainCheck,
    ChainHead,
    ChainReport,
    FaultKind,
    compute_entry_digest,
    compute_hashes,
    to_canonical_json,
)
from domain.audit.model import AuditEntry, Change
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from tests.support import builders

TENANT = Tenant("org_1", True)


def build_chain(count: int = 8) -> tuple[ChainHead, list[AuditEntry]]:
    """Return the head and the entries of a valid chain."""
    entries = []
    for number in range(count):
        id = new_id("aud")
        change = Change("source", "src_1", "update", {"name": f"N{number}"}, {"name": f"N{number + 1}"})
        entries.append(AuditEntry(id, builders.CALL, change, builders.MOMENT, id))
    links = compute_hashes(TENANT, ChainHead(0, GENESIS), entries)
    chained = [
        replace(entry, sequence=sequence, hash=hash) for entry, (sequence, hash) in zip(entries, links, strict=True)
    ]
    return ChainHead(count, chained[-1].hash or b""), chained


def check_chain(
    head: ChainHead | None,
    entries: list[AuditEntry],
    *,
    may_be_purged: bool = False,
    noted: Mapping[int, bytes] | None = None,
) -> ChainReport:
    """Check the entries in the order of their sequence numbers. `may_be_purged`: old entries may have been deleted by age."""
    since = builders.MOMENT + timedelta(days=1) if may_be_purged else None
    check = ChainCheck(TENANT, head, noted or {}, since, may_have_purged_entries=may_be_purged)
    check.check_entries(sorted(entries, key=lambda entry: entry.sequence))
    return check.build_report()


def list_faults(report: ChainReport) -> list[tuple[str, int, int | None]]:
    return [(fault.kind.value, fault.sequence, fault.until) for fault in report.faults]


def _change_entry(entries: list[AuditEntry]) -> list[AuditEntry]:
    entries[2] = replace(entries[2], change=replace(entries[2].change, after={"name": "Another"}))
    return entries


def _change_time(entries: list[AuditEntry]) -> list[AuditEntry]:
    entries[2] = replace(entries[2], created_at=entries[2].created_at + timedelta(microseconds=1))
    return entries


def _remove_entries(entries: list[AuditEntry]) -> list[AuditEntry]:
    return [*entries[:2], *entries[4:]]


def _truncate(entries: list[AuditEntry]) -> list[AuditEntry]:
    return entries[:6]


def _swap_entries(entries: list[AuditEntry]) -> list[AuditEntry]:
    entries[2], entries[3] = replace(entries[3], sequence=3), replace(entries[2], sequence=4)
    return entries


def _insert_entry(entries: list[AuditEntry]) -> list[AuditEntry]:
    forged = replace(entries[2], id=new_id("aud"), hash=bytes(32))
    later = [replace(entry, sequence=entry.sequence + 1) for entry in entries[2:]]
    return [*entries[:2], forged, *later]


def _append_entry(entries: list[AuditEntry]) -> list[AuditEntry]:
    return [*entries, replace(entries[0], id=new_id("aud"), sequence=9)]


def _remove_all_entries(_: list[AuditEntry]) -> list[AuditEntry]:
    return []


@pytest.mark.parametrize(
    ("tamper", "faults"),
    [
        (_change_entry, [(FaultKind.CHANGED, 3, None)]),
        (_change_time, [(FaultKind.CHANGED, 3, None)]),
        (_remove_entries, [(FaultKind.MISSING, 3, 4)]),
        (_truncate, [(FaultKind.MISSING, 7, 8)]),
        (_swap_entries, [(FaultKind.REORDERED, 3, None), (FaultKind.REORDERED, 5, None)]),
        (_insert_entry, [(FaultKind.INSERTED, 3, None)]),
        (_append_entry, [(FaultKind.CHANGED, 9, None), (FaultKind.INSERTED, 9, 9)]),
        (_remove_all_entries, [(FaultKind.MISSING, 1, 8)]),
    ],
    ids=lambda given: given.__name__[1:] if callable(given) else "",
)
def test_tampering_is_detected(
    tamper: Callable[[list[AuditEntry]], list[AuditEntry]], faults: list[tuple[str, int, int | None]]
) -> None:
    head, entries = build_chain()
    assert list_faults(check_chain(head, entries)) == []
    assert list_faults(check_chain(head, tamper(entries))) == faults


def test_a_missing_or_different_head_is_detected() -> None:
    head, entries = build_chain()
    assert list_faults(check_chain(replace(head, hash=GENESIS), entries)) == [("changed", 8, None)]
    assert list_faults(check_chain(None, entries)) == [("inserted", 1, 8)]
    assert list_faults(check_chain(None, [])) == []


def test_expired_entries_are_not_a_fault() -> None:
    head, entries = build_chain()
    anchored = replace(head, unchained_until=3, anchor=entries[2].hash or b"")
    assert list_faults(check_chain(anchored, entries[3:], may_be_purged=True)) == []
    assert check_chain(anchored, entries[2:], may_be_purged=True).unchained_entries == 1
    assert list_faults(check_chain(anchored, entries[4:], may_be_purged=True)) == [("missing", 4, 4)]
    assert list_faults(check_chain(replace(anchored, anchor=GENESIS), entries[3:], may_be_purged=True)) == [
        ("changed", 4, None)
    ]


def test_a_later_start_of_the_chain_hides_no_fault() -> None:
    """Existing entries, entries too young to have expired, and noted hashes are all checked."""
    head, entries = build_chain()
    later = replace(head, unchained_until=3, anchor=entries[2].hash or b"")
    assert list_faults(check_chain(later, entries)) == [("changed", number, None) for number in (1, 2, 3)]
    assert list_faults(check_chain(later, entries[3:])) == [("missing", 1, 3)]
    everything = replace(head, unchained_until=8, anchor=head.hash)
    assert list_faults(check_chain(everything, [])) == [("missing", 1, 8)]
    noted = {2: entries[1].hash or b"", 3: entries[2].hash or b""}
    assert list_faults(check_chain(later, entries[3:], may_be_purged=True, noted=noted)) == [("unchecked", 2, None)]
    assert list_faults(check_chain(later, entries[3:], may_be_purged=True, noted={3: GENESIS})) == [
        ("changed", 3, None)
    ]
    forged = [replace(entries[0], hash=GENESIS), *entries[1:]]
    assert ("changed", 1, None) in list_faults(
        check_chain(later, forged, may_be_purged=True, noted={1: entries[0].hash or b""})
    )


def test_faults_beyond_the_limit_are_counted() -> None:
    head, entries = build_chain(150)
    broken = [replace(entry, hash=GENESIS) for entry in entries]
    report = check_chain(head, broken)
    assert len(report.faults) == 100 and report.unlisted_faults == 50 and report.valid_entries == 0


def test_entries_of_another_tenant_are_faults() -> None:
    head, entries = build_chain()
    check = ChainCheck(Tenant("org_2", True), head)
    check.check_entries(entries)
    assert len(check.build_report().faults) == 8


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (1.0, 1),
        (1e22, 10**22),
        (1e-7, Decimal("0.0000001")),
        (-0.0, 0),
        (0.1, Decimal("0.10")),
        ({"b": 1, "a": (1, 2)}, {"a": [1, 2], "b": 1}),
    ],
)
def test_values_that_the_database_formats_differently_are_equal(written: Any, read: Any) -> None:
    assert to_canonical_json(written) == to_canonical_json(read)


def test_different_values_are_not_equal() -> None:
    texts = [
        to_canonical_json(value)
        for value in (None, True, 1, "1", "true", [1], {"1": 1}, "", [], {}, 'a"b', "a\\b", "ä")
    ]
    assert len(set(texts)) == len(texts)


def test_a_timestamp_is_equal_in_every_time_zone() -> None:
    _, [entry] = build_chain(1)
    elsewhere = replace(entry, created_at=entry.created_at.astimezone(timezone(timedelta(hours=5))))
    assert compute_entry_digest(TENANT, elsewhere) == compute_entry_digest(TENANT, entry)
