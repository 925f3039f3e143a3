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


async def _nothing() -> None:
    pass


@dataclass
class FakeModel:
    """Language model with a configured reply, which calls `before_reply` first."""

    reply: Any
    meanwhile: Callable[[], Awaitable[None]] = _nothing
    questions: list[ModelPrompt] = field(default_factory=list)

    async def generate(self, prompt: ModelPrompt) -> ModelOutput:
        self.questions.append(prompt)
        await self.meanwhile()
        if isinstance(self.reply, Exception):
            raise self.reply
        return ModelOutput(self.reply, USAGE)


def _guesses(*guesses: tuple[int, str | None, float]) -> Any:
    return {"columns": [{"position": at, "field": name, "confidence": sure} for at, name, sure in guesses]}


@dataclass
class Desk:
    """Source with one column mapping from a run."""

    backend: Backend
    tenant: Tenant
    source: str
    mapping: str

    async def work(self, models: FakeModel | None, patience: float = 30.0) -> None:
        """Run the jobs of the lane."""
        handler = MappingRequestJob(self.backend.uow, models, Replayer().build_feed_settings, patience)
        drain = LaneProcessor(self.backend.dispatch, {MODEL_REQUEST_JOB: handler}, lease=LEASE)
        await asyncio.wait_for(drain.process_lane(build_lane_name(self.tenant.org, MODEL_REQUEST_JOB)), 30)

    async def stored(self) -> SourceMapping:
        async with self.backend.uow.begin_reading(self.tenant) as tx:
            found = await tx[MappingStore].get(self.mapping)
        assert found is not None
        return found

    async def read(self) -> dict[str, tuple[str, str]]:
        """Return field and tier of each header."""
        return {column.column: (column.field, column.tier) for column in (await self.stored()).columns}

    async def uses(self) -> list[tuple[str, str, str, int, int, int]]:
        """Return the recorded usage of the model."""
        async with self.backend.uow.begin_reading(self.tenant) as tx:
            found = (await tx.store(ModelUse).page(PageRequest(limit=100))).items
        return [(u.task, u.subject, u.model, u.input_tokens, u.output_tokens, u.cost_micros) for u in found]

    async def confirm(self) -> None:
        """Confirm the mapping as a person does."""
        async with self.backend.uow.begin(self.tenant, CALL) as tx:
            found = await tx[MappingStore].get(self.mapping, lock=True)
            assert found is not None
            await tx[MappingStore].save(replace(found, status=MappingStatus.CONFIRMED, confirmed_at=tx.now))

    async def proposed(self, columns: tuple[Column, ...], rows: Any = ROWS, question: bool = True) -> None:
        """Store proposals as another run does."""
        async with self.backend.uow.begin(self.tenant, CALL) as tx:
            await store_proposals(tx, self.source, Stream.CATALOGUE, [_table(columns, rows)], uses_model=question)


def _table(columns: tuple[Column, ...], rows: Any = ROWS) -> MappedTable:
    known = {column.position for column in columns}
    unmapped = [UnmappedColumn(n, h, UnmappedReason.UNKNOWN) for n, h in enumerate(HEADERS) if n not in known]
    return MappedTable(None, HeaderMapping(HEADERS, columns, tuple(unmapped)), rows)


SKU = Column(0, "SKU", "sku", {})


async def _desk(backend: Backend, tenant: Tenant, *, question: bool = True) -> Desk:
    source = builders.source(config={"currency": "usd"})
    async with backend.uow.begin(tenant, CALL) as tx:
        await tx[SourceStore].add(source)
        ids = await store_proposals(tx, source.id, Stream.CATALOGUE, [_table((SKU,))], uses_model=question)
    return Desk(backend, tenant, source.id, *ids.values())


async def test_the_model_s_answer_is_proposed(backend: Backend, tenant: Tenant) -> None:
    desk = await _desk(backend, tenant)
    models = FakeModel(_guesses((1, "materials", 1.0), (2, "cost", 0.8)))
    await desk.work(models)
    assert await desk.read() == {"SKU": ("sku", "built_in"), "Zorb": ("materials", "model"), "Flim": ("cost", "model")}
    stored = await desk.stored()
    assert stored.status == "proposed" and stored.unmapped == () and stored.question_positions == (1, 2)
    assert await desk.uses() == [(MODEL_REQUEST_JOB, desk.mapping, "tests", 120, 9, 41)]
    await desk.work(models)
    await desk.proposed((SKU,))
    await desk.work(models)
    assert len(models.questions) == 1 and await desk.stored() == stored, "nothing is asked twice"


async def test_no_question_is_sent_without_a_model(backend: Backend, tenant: Tenant) -> None:
    models = FakeModel(_guesses((1, "materials", 1.0)))
    desk = await _desk(backend, tenant, question=False)
    await desk.work(models)
    assert not models.questions
    other = await _desk(backend, tenant)
    await other.work(None)
    await other.work(models)
    assert not models.questions, "a job from when there was somebody has ended"
    assert await other.uses() == []


@pytest.mark.settable_clock
async def test_what_a_person_confirms_meanwhile_stays(backend: Backend, tenant: Tenant) -> None:
    desk = await _desk(backend, tenant)
    models = FakeModel(_guesses((1, "materials", 1.0)), desk.confirm)
    await desk.work(models)
    assert await desk.read() == {"SKU": ("sku", "built_in")} and (await desk.stored()).status == "confirmed"
    assert len(await desk.uses()) == 1, "it was asked all the same"
    await desk.backend.pass_time(timedelta(hours=1))
    await desk.work(models)
    assert len(models.questions) == 1


@pytest.mark.settable_clock
async def test_a_proposal_made_meanwhile_is_queried_again(backend: Backend, tenant: Tenant) -> None:
    desk = await _desk(backend, tenant)
    learned = Column(2, "Flim", "price", {}, MappingTier.LEARNED)

    async def run() -> None:
        await desk.proposed((SKU, learned))

    models = FakeModel(_guesses((1, "materials", 1.0), (2, "cost", 1.0)), run)
    await desk.work(models)
    assert await desk.read() == {"SKU": ("sku", "built_in"), "Flim": ("price", "learned")}
    await desk.backend.pass_time(timedelta(minutes=1))
    models.reply = _guesses((1, "materials", 1.0))
    await desk.work(models)
    assert (await desk.read())["Zorb"] == ("materials", "model")
    assert [one["position"] for one in models.questions[1].data["columns"]] == [1]
    assert len(await desk.uses()) == 2


@pytest.mark.parametrize(
    "reply",
    [
        _guesses((0, "title", 1.0)),
        _guesses((1, "ignore", 1.0)),
        _guesses((1, "materials", 1.0), (7, "cost", 1.0)),
        "yes",
        None,
    ],
)
async def test_an_answer_about_anything_else_is_void(backend: Backend, tenant: Tenant, reply: Any) -> None:
    desk = await _desk(backend, tenant)
    await desk.work(FakeModel(reply))
    assert await desk.read() == {"SKU": ("sku", "built_in")}
    assert (await desk.stored()).question_positions == (1, 2) and len(await desk.uses()) == 1


async def test_a_model_that_refuses_is_not_queried_again(backend: Backend, tenant: Tenant) -> None:
    desk = await _desk(backend, tenant)
    models = FakeModel(ModelRefused("no", usage=USAGE))
    await desk.work(models)
    await desk.proposed((SKU,))
    await desk.work(models)
    assert len(models.questions) == 1 and len(await desk.uses()) == 1


@pytest.mark.settable_clock
async def test_a_busy_model_is_retried_later_a_limited_number_of_times(backend: Backend, tenant: Tenant) -> None:
    desk = await _desk(backend, tenant)
    models = FakeModel(ModelUnavailable("busy", retry_after=timedelta(minutes=30)))
    await desk.work(models)
    await desk.backend.pass_time(timedelta(minutes=20))
    await desk.work(models)
    assert len(models.questions) == 1, "it said when"
    for _ in range(9):
        await desk.backend.pass_time(timedelta(days=1))
        await desk.work(models)
    assert len(models.questions) == 6 and await desk.uses() == []
    models.reply = _guesses((1, "materials", 1.0))
    await desk.proposed((SKU,))
    await desk.work(models)
    assert (await desk.read())["Zorb"] == ("materials", "model"), "the next run has it asked anew"


@pytest.mark.settable_clock
async def test_a_model_without_an_answer_is_retried_later(backend: Backend, tenant: Tenant) -> None:
    desk = await _desk(backend, tenant)
    models = FakeModel(_guesses((1, "materials", 1.0)), asyncio.Event().wait)  # type: ignore[arg-type]
    await desk.work(models, patience=0.05)
    assert await desk.read() == {"SKU": ("sku", "built_in")} and await desk.uses() == []
    models.meanwhile = _nothing
    await desk.backend.pass_time(timedelta(hours=1))
    await desk.work(models)
    assert (await desk.read())["Zorb"] == ("materials", "model")


@pytest.mark.settable_clock
async def test_a_mapping_that_is_gone(backend: Backend, tenant: Tenant) -> None:
    desk = await _desk(backend, tenant)

    async def forget() -> None:
        async with backend.uow.begin(tenant, CALL) as tx:
            await tx[MappingStore].prune(desk.source, 0)

    models = FakeModel(_guesses((1, "materials", 1.0)), forget)
    await desk.work(models)
    await desk.backend.pass_time(timedelta(hours=1))
    await desk.work(models)
    assert len(models.questions) == 1 and len(await desk.uses()) == 1


async def test_settings_come_of_the_source(backend: Backend, tenant: Tenant) -> None:
    desk = await _desk(backend, tenant)
    await desk.work(FakeModel(_guesses((2, "dimensions.width", 1.0))))
    [_, width] = (await desk.stored()).columns
    assert width.settings == {"unit": "in", "unit_by": "market"}
    assert FeedSettings("usd") == Replayer().build_feed_settings(
        builders.source(config={"currency": "usd"}), Stream.CATALOGUE
    )
