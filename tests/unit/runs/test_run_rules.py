"""Rules of a run: chunks, the removal limit, pushes, and the next pull."""

from dataclasses import replace
from datetime import timedelta

import pytest

from domain.catalogue.batch import SLOT_COUNT
from domain.catalogue.model import Stream
from domain.ingestion.ports import HttpValidators
from domain.runs.chunks import (
    CHUNK_ROWS,
    compute_bucket_count,
    compute_slot,
    compute_slot_range,
    divide_buckets,
    split_keys,
)
from domain.runs.model import FetchRecord, PushInput, RunError, RunErrorCode, WaitingReason
from domain.runs.run_queue import with_next_pull
from domain.runs.usecases.removal_limit import compute_max_withdrawals, is_confirmation, select_offers_kept_by_stock
from domain.runs.usecases.snapshots import Snapshot
from domain.sources.model import Schedule
from tests.support import builders

NOW = builders.MOMENT


def test_chunks_contain_complete_buckets_and_all_slots() -> None:
    rows = CHUNK_ROWS[Stream.CATALOGUE]
    assert divide_buckets([rows - 1, 1, rows, 5], Stream.CATALOGUE) == [range(2), range(2, 3), range(3, 4)]
    assert divide_buckets([0], Stream.STOCK) == [range(1)]
    bounds = [compute_slot_range(chunk, 7) for chunk in (range(2), range(2, 3), range(3, 7))]
    assert (bounds[0][0], bounds[-1][1]) == (0, SLOT_COUNT)
    assert [high for _, high in bounds[:-1]] == [low for low, _ in bounds[1:]]


def test_keys_of_one_bucket_are_split() -> None:
    assert split_keys({}, 3) == [[]]
    assert split_keys({"a": 1, "b": 2, "c": 9, "d": 1}, 3) == [["a", "b"], ["c"], ["d"]]


def test_items_of_one_product_are_adjacent_in_stock_chunks() -> None:
    slots = [compute_slot(key, Stream.STOCK) >> 12 for key in ("LM-1001-01", "LM-1001-02")]
    assert slots[0] == slots[1]
    assert [compute_bucket_count(size, is_compressed=False) for size in (0, 16 << 10, (16 << 10) + 1, 1 << 40)] == [
        1,
        1,
        2,
        1024,
    ]
    assert compute_bucket_count(16 << 10, is_compressed=True) == 6


def test_the_removal_limit_depends_on_the_number_of_items() -> None:
    assert [compute_max_withdrawals(stated) for stated in (10, 166, 1000)] == [50, 50, 300]
    refused = builders.run("src_1", error=RunError(RunErrorCode.SHRINK_REFUSED, "No."), stats={"would_withdraw": 100})
    assert is_confirmation(refused, 110) and not is_confirmation(refused, 111)
    assert not is_confirmation(None, 1) and not is_confirmation(builders.run("src_1"), 0)
    held = frozenset({("a", "main"), ("a", "east"), ("b", "main")})
    assert select_offers_kept_by_stock(held, {"a"}, {"main"}) == {("a", "main")}
    assert select_offers_kept_by_stock(held, {"a"}, None) == {("a", "main"), ("a", "east")}


def test_the_last_part_determines_completeness() -> None:
    first = PushInput().with_part(5, batch="monday", has_more=True, is_complete=True)
    assert first == PushInput("monday", 1, 5, open=True, complete=False)
    assert first.with_part(2, batch=None, has_more=False, is_complete=True) == PushInput("monday", 2, 7, False, True)


def test_an_unknown_waiting_reason_is_a_retry() -> None:
    assert WaitingReason("maintenance") is WaitingReason.RETRY


@pytest.mark.parametrize(("changed", "minutes", "factor"), [(True, 30, 0.5), (False, 120, 2.0), (None, 60, 1.0)])
def test_adaptive_intervals_grow_without_changes(changed: bool | None, minutes: int, factor: float) -> None:
    source = builders.source(schedule=Schedule(interval_minutes=60, adaptive=True))
    after = with_next_pull(source, Stream.CATALOGUE, NOW, has_changes=changed, jitter=1.0)
    assert after.next_pull == NOW + timedelta(minutes=minutes)
    assert after.interval_factor == {"catalogue": factor}


def test_adaptive_intervals_are_bounded() -> None:
    source, seen = builders.source(schedule=Schedule(interval_minutes=60, adaptive=True)), []
    for changed in (True, True, None, False, False, False, False, None, True):
        source = with_next_pull(source, Stream.CATALOGUE, NOW, has_changes=changed, jitter=1.0)
        assert source.next_pull is not None
        seen.append((source.next_pull - NOW).total_seconds() / 60)
    assert seen == [30, 30, 30, 60, 120, 240, 240, 240, 120]
    plain = builders.source(schedule=Schedule(interval_minutes=60))
    for jitter in (0.9, 1.1):
        found = with_next_pull(plain, Stream.CATALOGUE, NOW, has_changes=False, jitter=jitter)
        assert found.next_pull == NOW + timedelta(minutes=60 * jitter) and found.interval_factor == {}
    often = builders.source(schedule=Schedule(stock_interval_minutes=5, adaptive=True))
    assert with_next_pull(often, Stream.STOCK, NOW, has_changes=True, jitter=1.0).next_stock_pull == NOW + timedelta(
        minutes=5
    )


def test_fetch_records_keep_earlier_validators() -> None:
    before = FetchRecord("s", etag='"1"', last_modified="Fri", at=NOW - timedelta(days=1))
    run, validators = builders.run("src_1"), HttpValidators('"2"')
    assert Snapshot(None, None, 0, is_unchanged=True).create_fetch_record("s", run, before, NOW) == replace(
        before, at=NOW
    )
    assert Snapshot(None, None, 0, True, None, validators).create_fetch_record("s", run, before, NOW) == replace(
        before, etag='"2"', at=NOW
    )
    assert Snapshot(None, "k", 9, False, None, validators).create_fetch_record("s", run, before, NOW) == FetchRecord(
        "s", etag='"2"', at=NOW
    )
    again = replace(run, snapshot="k", fetched=before)
    assert Snapshot(None, "k", 9).create_fetch_record("other", again, None, NOW).at == before.at, (
        "the age of the kept record is unchanged"
    )


def test_older_fetch_records_are_not_reused() -> None:
    run = builders.run("src_1", fetched=FetchRecord("s"), started_at=NOW)
    assert run.find_reusable_fetch_record("s") and run.find_reusable_fetch_record("s", NOW - timedelta(seconds=1))
    assert run.find_reusable_fetch_record("s", NOW) is None and run.find_reusable_fetch_record("other") is None
