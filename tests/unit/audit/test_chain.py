"""Every kind of tampering with a chain of audit entries is detected (domain/audit/chain.py)."""

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


def chain(count: int = 8) -> tuple[ChainHead, list[AuditEntry]]:
    """A whole one."""
    entries = []
    for number in range(count):
        id = new_id("aud")
        change = Change("source", "src_1", "update", {"name": f"N{number}"}, {"name": f"N{number + 1}"})
        entries.append(AuditEntry(id, builders.CALL, change, builders.MOMENT, id))
    links = compute_hashes(TENANT, ChainHead(0, GENESIS), entries)
    kept = [
        replace(entry, sequence=sequence, hash=hash) for entry, (sequence, hash) in zip(entries, links, strict=True)
    ]
    return ChainHead(count, kept[-1].hash or b""), kept


def checked(
    head: ChainHead | None, entries: list[AuditEntry], *, old: bool = False, noted: Mapping[int, bytes] | None = None
) -> ChainReport:
    """What a check of them finds; they come in the order of their numbers, whatever that is. `old`: some may have gone by age."""
    since = builders.MOMENT + timedelta(days=1) if old else None
    check = ChainCheck(TENANT, head, noted or {}, since, may_have_purged_entries=old)
    check.check_entries(sorted(entries, key=lambda entry: entry.sequence))
    return check.build_report()


def found(report: ChainReport) -> list[tuple[str, int, int | None]]:
    return [(fault.kind.value, fault.sequence, fault.until) for fault in report.faults]


def _changed(entries: list[AuditEntry]) -> list[AuditEntry]:
    entries[2] = replace(entries[2], change=replace(entries[2].change, after={"name": "Another"}))
    return entries


def _redated(entries: list[AuditEntry]) -> list[AuditEntry]:
    entries[2] = replace(entries[2], created_at=entries[2].created_at + timedelta(microseconds=1))
    return entries


def _taken_out(entries: list[AuditEntry]) -> list[AuditEntry]:
    return [*entries[:2], *entries[4:]]


def _cut_off(entries: list[AuditEntry]) -> list[AuditEntry]:
    return entries[:6]


def _swapped(entries: list[AuditEntry]) -> list[AuditEntry]:
    entries[2], entries[3] = replace(entries[3], sequence=3), replace(entries[2], sequence=4)
    return entries


def _put_in(entries: list[AuditEntry]) -> list[AuditEntry]:
    forged = replace(entries[2], id=new_id("aud"), hash=bytes(32))
    later = [replace(entry, sequence=entry.sequence + 1) for entry in entries[2:]]
    return [*entries[:2], forged, *later]


def _put_behind(entries: list[AuditEntry]) -> list[AuditEntry]:
    return [*entries, replace(entries[0], id=new_id("aud"), sequence=9)]


def _emptied(_: list[AuditEntry]) -> list[AuditEntry]:
    return []


@pytest.mark.parametrize(
    ("tampered", "faults"),
    [
        (_changed, [(FaultKind.CHANGED, 3, None)]),
        (_redated, [(FaultKind.CHANGED, 3, None)]),
        (_taken_out, [(FaultKind.MISSING, 3, 4)]),
        (_cut_off, [(FaultKind.MISSING, 7, 8)]),
        (_swapped, [(FaultKind.REORDERED, 3, None), (FaultKind.REORDERED, 5, None)]),
        (_put_in, [(FaultKind.INSERTED, 3, None)]),
        (_put_behind, [(FaultKind.CHANGED, 9, None), (FaultKind.INSERTED, 9, 9)]),
        (_emptied, [(FaultKind.MISSING, 1, 8)]),
    ],
    ids=lambda given: given.__name__[1:] if callable(given) else "",
)
def test_tampering_is_detected(
    tampered: Callable[[list[AuditEntry]], list[AuditEntry]], faults: list[tuple[str, int, int | None]]
) -> None:
    head, entries = chain()
    assert found(checked(head, entries)) == []
    assert found(checked(head, tampered(entries))) == faults


def test_a_missing_or_different_head_is_detected() -> None:
    head, entries = chain()
    assert found(checked(replace(head, hash=GENESIS), entries)) == [("changed", 8, None)]
    assert found(checked(None, entries)) == [("inserted", 1, 8)]
    assert found(checked(None, [])) == []


def test_expired_entries_are_not_a_fault() -> None:
    head, entries = chain()
    anchored = replace(head, unchained_until=3, anchor=entries[2].hash or b"")
    assert found(checked(anchored, entries[3:], old=True)) == []
    assert checked(anchored, entries[2:], old=True).unchained_entries == 1
    assert found(checked(anchored, entries[4:], old=True)) == [("missing", 4, 4)]
    assert found(checked(replace(anchored, anchor=GENESIS), entries[3:], old=True)) == [("changed", 4, None)]


def test_a_later_declared_start_of_the_chain_hides_no_fault() -> None:
    """Neither existing entries, nor entries too young to have expired, nor noted hashes are hidden."""
    head, entries = chain()
    later = replace(head, unchained_until=3, anchor=entries[2].hash or b"")
    assert found(checked(later, entries)) == [("changed", number, None) for number in (1, 2, 3)]
    assert found(checked(later, entries[3:])) == [("missing", 1, 3)]
    everything = replace(head, unchained_until=8, anchor=head.hash)
    assert found(checked(everything, [])) == [("missing", 1, 8)]
    noted = {2: entries[1].hash or b"", 3: entries[2].hash or b""}
    assert found(checked(later, entries[3:], old=True, noted=noted)) == [("unchecked", 2, None)]
    assert found(checked(later, entries[3:], old=True, noted={3: GENESIS})) == [("changed", 3, None)]
    forged = [replace(entries[0], hash=GENESIS), *entries[1:]]
    assert ("changed", 1, None) in found(checked(later, forged, old=True, noted={1: entries[0].hash or b""}))


def test_many_faults_are_listed_up_to_a_limit_and_the_rest_counted() -> None:
    head, entries = chain(150)
    broken = [replace(entry, hash=GENESIS) for entry in entries]
    report = checked(head, broken)
    assert len(report.faults) == 100 and report.unlisted_faults == 50 and report.valid_entries == 0


def test_entries_of_another_tenant_fit_no_chain() -> None:
    head, entries = chain()
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
    _, [entry] = chain(1)
    elsewhere = replace(entry, created_at=entry.created_at.astimezone(timezone(timedelta(hours=5))))
    assert compute_entry_digest(TENANT, elsewhere) == compute_entry_digest(TENANT, entry)
