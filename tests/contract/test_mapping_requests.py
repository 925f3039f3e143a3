"""Job that requests column fields from a language model (domain/mappings/usecases.py)."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest

from domain.catalogue.model import Stream
from domain.ingestion.model import Column, FeedSettings, HeaderMapping, MappingTier, UnmappedColumn, UnmappedReason
from domain.ingestion.snapshot_results import MappedTable
from domain.jobs.model import build_lane_name
from domain.jobs.usecases.lane_processor import LEASE, LaneProcessor
from domain.kernel.paging import PageRequest
from domain.kernel.tenancy import Tenant
from domain.mappings.model import MappingStatus, SourceMapping
from domain.mappings.model_requests import MODEL_REQUEST_JOB
from domain.mappings.ports import MappingStore
from domain.mappings.usecases import MappingRequestJob, store_proposals
from domain.runs.usecases.service import Replayer
from domain.sources.ports import SourceStore
from domain.usage.model import ModelUse
from ports.language_models import ModelOutput, ModelPrompt, ModelRefused, ModelUnavailable, ModelUsage
from tests.support import builders
from tests.support.backend import Backend

pytestmark = pytest.mark.asyncio
CALL = builders.CALL
HEADERS = ("SKU", "Zorb", "Flim")
ROWS = (("A-1", "oak", "19.50"), ("A-2", "ash", "20"))
USAGE = ModelUsage("tests", 120, 9, 41)


async def _do_nothing() -> None:
    pass


@dataclass
class FakeModel:
    """Language model with a configured reply, which calls `before_reply` first."""

    reply: Any
    before_reply: Callable[[], Awaitable[None]] = _do_nothing
    prompts: list[ModelPrompt] = field(default_factory=list)

    async def generate(self, prompt: ModelPrompt) -> ModelOutput:
        self.prompts.append(prompt)
        await self.before_reply()
        if isinstance(self.reply, Exception):
            raise self.reply
        return ModelOutput(self.reply, USAGE)


def _build_reply(*guesses: tuple[int, str | None, float]) -> Any:
    return {"columns": [{"position": at, "field": name, "confidence": sure} for at, name, sure in guesses]}


@dataclass
class MappingHarness:
    """Source with one column mapping from a run."""

    backend: Backend
    tenant: Tenant
    source: str
    mapping: str

    async def run_job(self, models: FakeModel | None, patience: float = 30.0) -> None:
        """Run the jobs of the lane."""
        handler = MappingRequestJob(self.backend.uow, models, Replayer().build_feed_settings, patience)
        drain = LaneProcessor(self.backend.dispatch, {MODEL_REQUEST_JOB: handler}, lease=LEASE)
        await asyncio.wait_for(drain.process_lane(build_lane_name(self.tenant.org, MODEL_REQUEST_JOB)), 30)

    async def load_mapping(self) -> SourceMapping:
        async with self.backend.uow.begin_reading(self.tenant) as tx:
            found = await tx[MappingStore].get(self.mapping)
        assert found is not None
        return found

    async def list_columns(self) -> dict[str, tuple[str, str]]:
        """Return field and tier of each header."""
        return {column.column: (column.field, column.tier) for column in (await self.load_mapping()).columns}

    async def list_model_uses(self) -> list[tuple[str, str, str, int, int, int]]:
        """Return the recorded usage of the model."""
        async with self.backend.uow.begin_reading(self.tenant) as tx:
            found = (await tx.store(ModelUse).page(PageRequest(limit=100))).items
        return [(u.task, u.subject, u.model, u.input_tokens, u.output_tokens, u.cost_micros) for u in found]

    async def confirm_mapping(self) -> None:
        """Confirm the mapping as a person does."""
        async with self.backend.uow.begin(self.tenant, CALL) as tx:
            found = await tx[MappingStore].get(self.mapping, lock=True)
            assert found is not None
            await tx[MappingStore].save(replace(found, status=MappingStatus.CONFIRMED, confirmed_at=tx.now))

    async def propose_columns(self, columns: tuple[Column, ...], rows: Any = ROWS, question: bool = True) -> None:
        """Store proposals as another run does."""
        async with self.backend.uow.begin(self.tenant, CALL) as tx:
            await store_proposals(tx, self.source, Stream.CATALOGUE, [_build_table(columns, rows)], uses_model=question)


def _build_table(columns: tuple[Column, ...], rows: Any = ROWS) -> MappedTable:
    known = {column.position for column in columns}
    unmapped = [UnmappedColumn(n, h, UnmappedReason.UNKNOWN) for n, h in enumerate(HEADERS) if n not in known]
    return MappedTable(None, HeaderMapping(HEADERS, columns, tuple(unmapped)), rows)


SKU = Column(0, "SKU", "sku", {})


async def _create_harness(backend: Backend, tenant: Tenant, *, question: bool = True) -> MappingHarness:
    source = builders.source(config={"currency": "usd"})
    async with backend.uow.begin(tenant, CALL) as tx:
        await tx[SourceStore].add(source)
        ids = await store_proposals(tx, source.id, Stream.CATALOGUE, [_build_table((SKU,))], uses_model=question)
    return MappingHarness(backend, tenant, source.id, *ids.values())


async def test_the_models_answer_is_proposed(backend: Backend, tenant: Tenant) -> None:
    harness = await _create_harness(backend, tenant)
    models = FakeModel(_build_reply((1, "materials", 1.0), (2, "cost", 0.8)))
    await harness.run_job(models)
    assert await harness.list_columns() == {
        "SKU": ("sku", "built_in"),
        "Zorb": ("materials", "model"),
        "Flim": ("cost", "model"),
    }
    stored = await harness.load_mapping()
    assert stored.status == "proposed" and stored.unmapped == () and stored.question_positions == (1, 2)
    assert await harness.list_model_uses() == [(MODEL_REQUEST_JOB, harness.mapping, "tests", 120, 9, 41)]
    await harness.run_job(models)
    await harness.propose_columns((SKU,))
    await harness.run_job(models)
    assert len(models.prompts) == 1 and await harness.load_mapping() == stored, "no column is requested twice"


async def test_no_question_is_sent_without_a_model(backend: Backend, tenant: Tenant) -> None:
    models = FakeModel(_build_reply((1, "materials", 1.0)))
    harness = await _create_harness(backend, tenant, question=False)
    await harness.run_job(models)
    assert not models.prompts
    other = await _create_harness(backend, tenant)
    await other.run_job(None)
    await other.run_job(models)
    assert not models.prompts, "a job queued while a model was configured ends"
    assert await other.list_model_uses() == []


@pytest.mark.settable_clock
async def test_a_confirmation_during_the_request_is_kept(backend: Backend, tenant: Tenant) -> None:
    harness = await _create_harness(backend, tenant)
    models = FakeModel(_build_reply((1, "materials", 1.0)), harness.confirm_mapping)
    await harness.run_job(models)
    assert (
        await harness.list_columns() == {"SKU": ("sku", "built_in")}
        and (await harness.load_mapping()).status == "confirmed"
    )
    assert len(await harness.list_model_uses()) == 1, "the request was sent nevertheless"
    await harness.backend.pass_time(timedelta(hours=1))
    await harness.run_job(models)
    assert len(models.prompts) == 1


@pytest.mark.settable_clock
async def test_a_proposal_during_the_request_is_requested_again(backend: Backend, tenant: Tenant) -> None:
    harness = await _create_harness(backend, tenant)
    learned = Column(2, "Flim", "price", {}, MappingTier.LEARNED)

    async def run() -> None:
        await harness.propose_columns((SKU, learned))

    models = FakeModel(_build_reply((1, "materials", 1.0), (2, "cost", 1.0)), run)
    await harness.run_job(models)
    assert await harness.list_columns() == {"SKU": ("sku", "built_in"), "Flim": ("price", "learned")}
    await harness.backend.pass_time(timedelta(minutes=1))
    models.reply = _build_reply((1, "materials", 1.0))
    await harness.run_job(models)
    assert (await harness.list_columns())["Zorb"] == ("materials", "model")
    assert [one["position"] for one in models.prompts[1].data["columns"]] == [1]
    assert len(await harness.list_model_uses()) == 2


@pytest.mark.parametrize(
    "reply",
    [
        _build_reply((0, "title", 1.0)),
        _build_reply((1, "ignore", 1.0)),
        _build_reply((1, "materials", 1.0), (7, "cost", 1.0)),
        "yes",
        None,
    ],
)
async def test_an_answer_about_other_columns_is_discarded(backend: Backend, tenant: Tenant, reply: Any) -> None:
    harness = await _create_harness(backend, tenant)
    await harness.run_job(FakeModel(reply))
    assert await harness.list_columns() == {"SKU": ("sku", "built_in")}
    assert (await harness.load_mapping()).question_positions == (1, 2) and len(await harness.list_model_uses()) == 1


async def test_a_model_that_refuses_is_not_queried_again(backend: Backend, tenant: Tenant) -> None:
    harness = await _create_harness(backend, tenant)
    models = FakeModel(ModelRefused("no", usage=USAGE))
    await harness.run_job(models)
    await harness.propose_columns((SKU,))
    await harness.run_job(models)
    assert len(models.prompts) == 1 and len(await harness.list_model_uses()) == 1


@pytest.mark.settable_clock
async def test_a_busy_model_is_retried_later_a_limited_number_of_times(backend: Backend, tenant: Tenant) -> None:
    harness = await _create_harness(backend, tenant)
    models = FakeModel(ModelUnavailable("busy", retry_after=timedelta(minutes=30)))
    await harness.run_job(models)
    await harness.backend.pass_time(timedelta(minutes=20))
    await harness.run_job(models)
    assert len(models.prompts) == 1, "the model stated when to retry"
    for _ in range(9):
        await harness.backend.pass_time(timedelta(days=1))
        await harness.run_job(models)
    assert len(models.prompts) == 6 and await harness.list_model_uses() == []
    models.reply = _build_reply((1, "materials", 1.0))
    await harness.propose_columns((SKU,))
    await harness.run_job(models)
    assert (await harness.list_columns())["Zorb"] == ("materials", "model"), "the next run requests it again"


@pytest.mark.settable_clock
async def test_a_model_without_an_answer_is_retried_later(backend: Backend, tenant: Tenant) -> None:
    harness = await _create_harness(backend, tenant)
    models = FakeModel(_build_reply((1, "materials", 1.0)), asyncio.Event().wait)  # type: ignore[arg-type]
    await harness.run_job(models, patience=0.05)
    assert await harness.list_columns() == {"SKU": ("sku", "built_in")} and await harness.list_model_uses() == []
    models.before_reply = _do_nothing
    await harness.backend.pass_time(timedelta(hours=1))
    await harness.run_job(models)
    assert (await harness.list_columns())["Zorb"] == ("materials", "model")


@pytest.mark.settable_clock
async def test_a_deleted_mapping_is_skipped(backend: Backend, tenant: Tenant) -> None:
    harness = await _create_harness(backend, tenant)

    async def forget() -> None:
        async with backend.uow.begin(tenant, CALL) as tx:
            await tx[MappingStore].prune(harness.source, 0)

    models = FakeModel(_build_reply((1, "materials", 1.0)), forget)
    await harness.run_job(models)
    await harness.backend.pass_time(timedelta(hours=1))
    await harness.run_job(models)
    assert len(models.prompts) == 1 and len(await harness.list_model_uses()) == 1


async def test_settings_come_from_the_source(backend: Backend, tenant: Tenant) -> None:
    harness = await _create_harness(backend, tenant)
    await harness.run_job(FakeModel(_build_reply((2, "dimensions.width", 1.0))))
    [_, width] = (await harness.load_mapping()).columns
    assert width.settings == {"unit": "in", "unit_by": "market"}
    assert FeedSettings("usd") == Replayer().build_feed_settings(
        builders.source(config={"currency": "usd"}), Stream.CATALOGUE
    )
