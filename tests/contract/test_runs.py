"""Runs (domain/runs/ports.py)."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from domain.ingestion.model import UnmappedReason
from domain.kernel.errors import Conflict
from domain.kernel.ids import new_id
from domain.kernel.paging import Page, PageRequest
from domain.kernel.problems import Problem
from domain.kernel.tenancy import Tenant
from domain.mappings.ports import MappingStore
from domain.runs.model import (
    CheckInput,
    Checkpoint,
    FetchRecord,
    OpenReview,
    PushInput,
    Run,
    RunColumn,
    RunError,
    RunErrorCode,
    RunFilter,
    RunWait,
    SourceRuns,
    UploadInput,
)
from domain.runs.ports import RunStore
from ports.unit_of_work import UnitOfWork
from tests.support import builders
from tests.support.backend import Backend
from tests.support.pagination import check_insertions, check_pagination

pytestmark = pytest.mark.asyncio
CALL = builders.CALL
NOW = builders.MOMENT


def _get_id(run: Run) -> str:
    return run.id


async def _add_runs(uow: UnitOfWork, tenant: Tenant, *runs: Run) -> None:
    async with uow.begin(tenant, CALL) as tx:
        for run in runs:
            await tx[RunStore].add(run)


def _build_ended_run(source: str, **changes: object) -> Run:
    return builders.run(source, **({"status": "succeeded", "stage": "done", "finished_at": NOW} | changes))


async def test_keeps_every_field(uow: UnitOfWork, tenant: Tenant) -> None:
    run = builders.run(
        "src_1",
        trigger="upload",
        stream="stock",
        status="waiting",
        stage="parse",
        served_by="admin_graphql",
        stats={"rows": 12, "problems": 2},
        error=RunError("fetch_failed", "It answered 503."),
        waiting=RunWait("rate_limited", NOW + timedelta(seconds=60), 2, "Retry-After: 60"),
        problems=(
            Problem("sku", "missing", "No key.", line=3, column="SKU", sheet="Prices", value="x", ignored=True),
            Problem("a", "missing", "c"),
        ),
        started_at=NOW,
        finished_at=NOW + timedelta(microseconds=7),
        snapshot="snapshots/ab/cd",
        input=UploadInput("upl_1", "uploads/upl_1"),
        fetched=FetchRecord("5e77", whole=False, etag='W/"1"', last_modified="Fri, 20 Nov 2026 13:08:00 GMT"),
        checkpoint=Checkpoint(7, "12 of 40 by 3000"),
        waits=2,
        host_waits=3,
        accept_shrink=True,
        columns=(RunColumn("SKU", 0, "Prices", "sku"), RunColumn("Zorb", 1, reason=UnmappedReason.UNKNOWN)),
        mappings=("map_1", "map_2"),
    )
    await _add_runs(uow, tenant, run)
    async with uow.begin_reading(tenant) as tx:
        assert await tx[RunStore].get(run.id) == run
        assert await tx[RunStore].get("run_0000000000000000000000") is None


async def test_keeps_push_input(uow: UnitOfWork, tenant: Tenant) -> None:
    run = builders.run(
        "src_1", trigger="push", input=PushInput("monday", parts=3, records=9, open=False, complete=True)
    )
    await _add_runs(uow, tenant, run)
    async with uow.begin_reading(tenant) as tx:
        assert await tx[RunStore].get(run.id) == run


async def test_belongs_to_one_tenant_and_mode(backend: Backend, tenant: Tenant) -> None:
    run = builders.run("src_1")
    await _add_runs(backend.uow, tenant, run)
    for other in (replace(tenant, livemode=False), await backend.tenant()):
        async with backend.uow.begin_reading(other) as tx:
            assert await tx[RunStore].get(run.id) is None
            assert await tx[RunStore].find_open("src_1") is None
            assert (await tx[RunStore].page(PageRequest(), RunFilter("src_1"))).items == ()
        await _add_runs(backend.uow, other, builders.run("src_1"))


@pytest.mark.parametrize("status", ["queued", "running", "waiting"])
async def test_a_source_and_stream_have_one_open_run(uow: UnitOfWork, tenant: Tenant, status: str) -> None:
    first = builders.run("src_1", status=status)
    await _add_runs(uow, tenant, first)
    with pytest.raises(Conflict):
        await _add_runs(uow, tenant, builders.run("src_1"))
    await _add_runs(uow, tenant, builders.run("src_1", stream="stock"), builders.run("src_2"))
    async with uow.begin(tenant, CALL) as tx:
        await tx[RunStore].save(first.with_end("failed", NOW, RunError("fetch_failed", "No.")))
    await _add_runs(uow, tenant, builders.run("src_1"))


@pytest.mark.parametrize("trigger", ["push", "mail"])
async def test_several_runs_of_received_data_can_be_queued(uow: UnitOfWork, tenant: Tenant, trigger: str) -> None:
    await _add_runs(uow, tenant, *(builders.run("src_1", trigger=trigger) for _ in range(3)))
    async with uow.begin_reading(tenant) as tx:
        assert len((await tx[RunStore].page(PageRequest(), RunFilter("src_1"))).items) == 3


async def test_runs_are_saved(uow: UnitOfWork, tenant: Tenant) -> None:
    run = builders.run("src_1")
    await _add_runs(uow, tenant, run)
    changed = replace(run.with_start(NOW), stage="map", stats={"rows": 3}, served_by="rest", snapshot="snapshots/1")
    async with uow.begin(tenant, CALL) as tx:
        await tx[RunStore].save(changed)
        assert await tx[RunStore].get(run.id) == changed


async def test_open_runs_are_found(uow: UnitOfWork, tenant: Tenant) -> None:
    stock = builders.run("src_1", stream="stock", status="running")
    await _add_runs(uow, tenant, _build_ended_run("src_1"), stock, builders.run("src_2"))
    async with uow.begin_reading(tenant) as tx:
        assert await tx[RunStore].find_open("src_1") == stock
        assert await tx[RunStore].find_open("src_1", "stock") == stock
        assert await tx[RunStore].find_open("src_1", "catalogue") is None
        assert await tx[RunStore].find_open("src_3") is None


async def test_the_last_successful_and_last_ended_runs_are_found(uow: UnitOfWork, tenant: Tenant) -> None:
    names = ("good", "unread", "failed", "cancelled", "open", "other")
    ids = dict(zip(names, sorted(new_id("run") for _ in names), strict=True))
    good = _build_ended_run("src_1", id=ids["good"], snapshot="snapshots/1")
    failed = _build_ended_run("src_1", id=ids["failed"], status="failed", stage="parse", snapshot="snapshots/2")
    other = _build_ended_run("src_1", id=ids["other"], stream="stock", snapshot="snapshots/3")
    cancelled = _build_ended_run("src_1", id=ids["cancelled"], status="cancelled", snapshot="snapshots/4")
    open_run = builders.run("src_1", id=ids["open"])
    await _add_runs(uow, tenant, good, _build_ended_run("src_1", id=ids["unread"]), failed, cancelled, open_run, other)
    async with uow.begin_reading(tenant) as tx:
        assert await tx[RunStore].find_last_successful("src_1", "catalogue") == good
        assert await tx[RunStore].find_last_succeeded_or_failed("src_1", "catalogue") == failed
        assert await tx[RunStore].find_last_successful("src_1", "stock") == other
        assert await tx[RunStore].find_last_succeeded_or_failed("src_2", "stock") is None
        assert await tx[RunStore].find_last_successful("src_2", "catalogue") is None


async def test_replayable_runs_are_listed(uow: UnitOfWork, tenant: Tenant) -> None:
    ids = sorted(new_id("run") for _ in range(5))
    before = _build_ended_run("src_1", id=ids[0], status="needs_mapping", snapshot="snapshots/0")
    good = _build_ended_run("src_1", id=ids[1], snapshot="snapshots/1")
    unread = _build_ended_run("src_1", id=ids[2], status="needs_mapping")
    waiting = _build_ended_run("src_1", id=ids[3], status="needs_mapping", snapshot="snapshots/3")
    failed = _build_ended_run("src_1", id=ids[4], status="failed", snapshot="snapshots/4")
    await _add_runs(uow, tenant, before)
    async with uow.begin_reading(tenant) as tx:
        assert list(await tx[RunStore].list_replayable("src_1", "catalogue")) == [before]
    await _add_runs(uow, tenant, good, unread)
    async with uow.begin_reading(tenant) as tx:
        assert list(await tx[RunStore].list_replayable("src_1", "catalogue")) == [good], "earlier runs are not replayed"
    await _add_runs(uow, tenant, waiting, failed)
    async with uow.begin_reading(tenant) as tx:
        assert list(await tx[RunStore].list_replayable("src_1", "catalogue")) == [waiting, good]
        assert list(await tx[RunStore].list_replayable("src_1", "stock")) == []
        assert list(await tx[RunStore].list_replayable("src_2", "catalogue")) == []


async def test_the_last_run_over_the_removal_limit_is_found(uow: UnitOfWork, tenant: Tenant) -> None:
    error = RunError(RunErrorCode.SHRINK_REFUSED, "x")
    ids = sorted(new_id("run") for _ in range(4))
    refused = _build_ended_run("src_1", id=ids[0], status="failed", snapshot="snapshots/0", error=error)
    unread = _build_ended_run("src_1", id=ids[1], status="failed", error=error)
    await _add_runs(uow, tenant, refused, unread)
    async with uow.begin_reading(tenant) as tx:
        assert await tx[RunStore].find_run_over_removal_limit("src_1", "catalogue") == refused
        assert await tx[RunStore].find_run_over_removal_limit("src_1", "stock") is None
        assert await tx[RunStore].find_run_over_removal_limit("src_2", "catalogue") is None
    await _add_runs(uow, tenant, _build_ended_run("src_1", id=ids[2], snapshot="snapshots/2"))
    async with uow.begin_reading(tenant) as tx:
        assert await tx[RunStore].find_run_over_removal_limit("src_1", "catalogue") is None, "a successful run followed"


async def test_pages_newest_first(uow: UnitOfWork, tenant: Tenant) -> None:
    runs = [_build_ended_run("src_1") for _ in range(17)]
    await _add_runs(uow, tenant, *runs, *(_build_ended_run("src_2") for _ in range(3)))

    async def fetch(page_request: PageRequest) -> Page[Run]:
        async with uow.begin_reading(tenant) as tx:
            return await tx[RunStore].page(page_request, RunFilter("src_1"))

    async def insert() -> None:
        await _add_runs(uow, tenant, _build_ended_run("src_1"), _build_ended_run("src_2"))

    expected = sorted(runs, key=_get_id, reverse=True)
    await check_pagination(fetch, expected, _get_id)
    await check_insertions(fetch, insert, expected, _get_id)


async def test_stock_checks_run_alongside_the_runs_of_a_stream(uow: UnitOfWork, tenant: Tenant) -> None:
    checks = [
        builders.run("src_1", trigger="stock_check", stream="stock", input=CheckInput(f"chk_{number}", "var_1"))
        for number in range(3)
    ]
    ended = _build_ended_run("src_1", trigger="stock_check", stream="stock")
    await _add_runs(uow, tenant, *checks, ended, builders.run("src_2", trigger="stock_check", stream="stock"))
    async with uow.begin_reading(tenant) as tx:
        assert await tx[RunStore].get(checks[0].id) == checks[0]
        assert await tx[RunStore].find_open("src_1") is None and await tx[RunStore].find_open("src_1", "stock") is None
        assert list(await tx[RunStore].list_open_checks("src_1", 10)) == checks
        assert list(await tx[RunStore].list_open_checks("src_1", 2)) == checks[:2]
        assert await tx[RunStore].find_last_succeeded_or_failed("src_1", "stock") is None
    pull = builders.run("src_1", stream="stock")
    await _add_runs(uow, tenant, pull)
    async with uow.begin_reading(tenant) as tx:
        assert await tx[RunStore].find_open("src_1", "stock") == pull
        assert list(await tx[RunStore].list_open_checks("src_1", 10)) == checks


async def test_the_newest_imports_are_found(uow: UnitOfWork, tenant: Tenant) -> None:
    noon = datetime(2026, 11, 20, 12, tzinfo=UTC)
    ids = sorted(new_id("run") for _ in range(6))
    error = RunError(RunErrorCode.FETCH_FAILED, "The address answered 404.")
    older, failed, running, check, old = (
        _build_ended_run(source, id=ids[n], created_at=noon - timedelta(days=days), **fields)
        for n, (source, days, fields) in enumerate(
            [
                ("src_1", 1, {"status": "succeeded", "stats": {"rows": 5}}),
                ("src_1", 0, {"status": "failed", "error": error}),
                ("src_1", 0, {"status": "queued"}),
                ("src_1", 0, {"trigger": "stock_check"}),
                ("src_2", 90, {"status": "needs_mapping"}),
            ]
        )
    )
    await _add_runs(uow, tenant, older, failed, running, check, old)
    async with uow.begin_reading(tenant) as tx:
        sources = ["src_1", "src_2", "src_3"]
        newest = {run.source: run.id for run in await tx[RunStore].list_newest(sources)}
        assert newest == {"src_1": running.id, "src_2": old.id}
        ended = {run.source: run for run in await tx[RunStore].list_newest(sources, ended=True)}
        assert {source: run.id for source, run in ended.items()} == {"src_1": failed.id, "src_2": old.id}
        assert ended["src_1"].has_failed and ended["src_1"].error == error.message
        summaries = await tx[RunStore].list_summaries("src_1", noon - timedelta(hours=1))
        assert [run.id for run in summaries] == [running.id, failed.id]
        [first] = await tx[RunStore].list_newest(["src_1"], ended=True)
        assert first == summaries[1]
    async with uow.begin_reading(replace(tenant, livemode=False)) as tx:
        assert not await tx[RunStore].list_newest(sources) and not await tx[RunStore].list_summaries("src_1", noon)


async def test_imports_are_summarised_by_source(uow: UnitOfWork, tenant: Tenant) -> None:
    noon = datetime(2026, 11, 20, 12, tzinfo=UTC)
    ids = sorted(new_id("run") for _ in range(6))
    runs = [
        _build_ended_run("src_1", id=ids[n], created_at=noon, finished_at=noon + timedelta(hours=n), **fields)
        for n, fields in enumerate(
            [
                {"stats": {"rows": 100, "problems": 3}},
                {"stats": {"unchanged_feed": 1, "problems": 3}, "fetched": FetchRecord("x", at=noon + timedelta(minutes=5))},
                {"stats": {"rows": 50}, "stream": "stock"},
                {"status": "failed"},
                {"trigger": "category_rules", "stats": {"rows": 7}},
                {"status": "needs_mapping", "stats": {"rows": 9}},
            ]
        )
    ]  # fmt: skip
    await _add_runs(uow, tenant, *runs, _build_ended_run("src_2", created_at=noon - timedelta(days=31)))
    async with uow.begin_reading(tenant) as tx:
        found = await tx[RunStore].summarise_by_source(noon - timedelta(days=30))
    read_at = (noon, noon + timedelta(minutes=5))
    assert found == [SourceRuns("src_1", succeeded=3, failed=1, rows=150, problems=3, read_at=read_at)]


async def test_open_reviews_are_listed(uow: UnitOfWork, tenant: Tenant) -> None:
    mappings = [builders.mapping("src_1", f"Header {n}") for n in range(3)]
    confirmed = replace(mappings[0], status="confirmed", confirmed_at=NOW)
    ids = sorted(new_id("run") for _ in range(6))
    read = tuple(mapping.id for mapping in mappings[:2])
    older = _build_ended_run("src_1", id=ids[0], stats={"problems": 90})
    newer = _build_ended_run("src_1", id=ids[1], stats={"problems": 40, "problems_ignored": 3}, mappings=read)
    failed = _build_ended_run("src_1", id=ids[2], status="failed", stats={"problems": 1})
    check = _build_ended_run("src_1", id=ids[3], trigger="stock_check", stats={"problems": 1})
    stock = _build_ended_run("src_1", id=ids[4], stream="stock", stats={"problems": 2, "problems_ignored": 2})
    clean = _build_ended_run("src_2", id=ids[5])
    async with uow.begin(tenant, CALL) as tx:
        for mapping in (confirmed, *mappings[1:]):
            await tx[MappingStore].add(mapping)
    await _add_runs(uow, tenant, older, newer, failed, check, stock, clean)
    async with uow.begin_reading(tenant) as tx:
        found = await tx[RunStore].list_open_reviews(["src_1", "src_2"], NOW - timedelta(days=1))
        assert list(found) == [OpenReview("src_1", newer.id, 37, 1, mappings[1].id, "catalogue")]
        assert list(await tx[RunStore].list_open_reviews(["src_1"], NOW + timedelta(days=9))) == []
        assert list(await tx[RunStore].list_open_reviews(["src_2"], NOW - timedelta(days=1))) == []
