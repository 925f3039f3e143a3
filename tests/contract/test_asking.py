"""The job that asks a model about a mapping's columns (domain/mappings/usecases.py), on every store."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest

from domain.catalogue.model import Stream
from domain.ingestion.model import Column, FeedSettings, HeaderMapping, MappingTier, Unmapped, UnmappedReason
from domain.ingestion.reading import ReadTable
from domain.jobs.model import lane_of
from domain.jobs.usecases.draining import LEASE, Drain
from domain.kernel.paging import PageRequest
from domain.kernel.tenancy import Tenant
from domain.mappings.asking import ASK
from domain.mappings.model import MappingStatus, SourceMapping
from domain.mappings.ports import MappingStore
from domain.mappings.usecases import MappingAsking, keep_proposals
from domain.runs.usecases.service import Replayer
from domain.sources.ports import SourceStore
from domain.usage.model import ModelUse
from ports.models import ModelAnswer, ModelLater, ModelQuestion, ModelRefused, ModelUsage
from tests.support import builders
from tests.support.backend import Backend

pytestmark = pytest.mark.asyncio
CALL = builders.CALL
HEADERS = ("SKU", "Zorb", "Flim")
ROWS = (("A-1", "oak", "19.50"), ("A-2", "ash", "20"))
USAGE = ModelUsage("tests", 120, 9, 41)


async def _nothing() -> None:
    """Meanwhile nothing happens."""


@dataclass
class Asked:
    """A model that says what it is told to; `meanwhile` happens before it answers."""

    says: Any
    meanwhile: Callable[[], Awaitable[None]] = _nothing
    questions: list[ModelQuestion] = field(default_factory=list)

    async def ask(self, question: ModelQuestion) -> ModelAnswer:
        """The answer, or the failure."""
        self.questions.append(question)
        await self.meanwhile()
        if isinstance(self.says, Exception):
            raise self.says
        return ModelAnswer(self.says, USAGE)


def _says(*guesses: tuple[int, str | None, float]) -> Any:
    return {"columns": [{"position": at, "field": name, "confidence": sure} for at, name, sure in guesses]}


@dataclass
class Desk:
    """A source with one mapping, left by a run."""

    backend: Backend
    tenant: Tenant
    source: str
    mapping: str

    async def work(self, models: Asked | None, patience: float = 30.0) -> None:
        """Carry out what the lane holds."""
        handler = MappingAsking(self.backend.uow, models, Replayer().settings, patience)
        drain = Drain(self.backend.dispatch, {ASK: handler}, lease=LEASE)
        await asyncio.wait_for(drain.drain(lane_of(self.tenant.org, ASK)), 30)

    async def stored(self) -> SourceMapping:
        """The mapping."""
        async with self.backend.uow.read(self.tenant) as tx:
            found = await tx[MappingStore].get(self.mapping)
        assert found is not None
        return found

    async def read(self) -> dict[str, tuple[str, str]]:
        """Field and tier by header."""
        return {column.column: (column.field, column.tier) for column in (await self.stored()).columns}

    async def uses(self) -> list[tuple[str, str, str, int, int, int]]:
        """What is put down of asking."""
        async with self.backend.uow.read(self.tenant) as tx:
            found = (await tx.store(ModelUse).page(PageRequest(limit=100))).items
        return [(u.task, u.subject, u.model, u.input_tokens, u.output_tokens, u.cost_micros) for u in found]

    async def confirm(self) -> None:
        """What a person does."""
        async with self.backend.uow.begin(self.tenant, CALL) as tx:
            found = await tx[MappingStore].get(self.mapping, lock=True)
            assert found is not None
            await tx[MappingStore].save(replace(found, status=MappingStatus.CONFIRMED, confirmed_at=tx.now))

    async def proposed(self, columns: tuple[Column, ...], rows: Any = ROWS, ask: bool = True) -> None:
        """Another run reads the headers."""
        async with self.backend.uow.begin(self.tenant, CALL) as tx:
            await keep_proposals(tx, self.source, Stream.CATALOGUE, [_table(columns, rows)], ask=ask)


def _table(columns: tuple[Column, ...], rows: Any = ROWS) -> ReadTable:
    known = {column.position for column in columns}
    unmapped = [Unmapped(n, h, UnmappedReason.UNKNOWN) for n, h in enumerate(HEADERS) if n not in known]
    return ReadTable(None, HeaderMapping(HEADERS, columns, tuple(unmapped)), rows)


SKU = Column(0, "SKU", "sku", {})


async def _desk(backend: Backend, tenant: Tenant, *, ask: bool = True) -> Desk:
    source = builders.source(config={"currency": "usd"})
    async with backend.uow.begin(tenant, CALL) as tx:
        await tx[SourceStore].add(source)
        ids = await keep_proposals(tx, source.id, Stream.CATALOGUE, [_table((SKU,))], ask=ask)
    return Desk(backend, tenant, source.id, *ids.values())


async def test_what_a_model_says_is_proposed(backend: Backend, tenant: Tenant) -> None:
    desk = await _desk(backend, tenant)
    models = Asked(_says((1, "materials", 1.0), (2, "cost", 0.8)))
    await desk.work(models)
    assert await desk.read() == {"SKU": ("sku", "built_in"), "Zorb": ("materials", "model"), "Flim": ("cost", "model")}
    stored = await desk.stored()
    assert stored.status == "proposed" and stored.unmapped == () and stored.asked == (1, 2)
    assert await desk.uses() == [(ASK, desk.mapping, "tests", 120, 9, 41)]
    await desk.work(models)
    await desk.proposed((SKU,))
    await desk.work(models)
    assert len(models.questions) == 1 and await desk.stored() == stored, "nothing is asked twice"


async def test_nothing_is_asked_unless_somebody_is_there_to_be(backend: Backend, tenant: Tenant) -> None:
    models = Asked(_says((1, "materials", 1.0)))
    desk = await _desk(backend, tenant, ask=False)
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
    models = Asked(_says((1, "materials", 1.0)), desk.confirm)
    await desk.work(models)
    assert await desk.read() == {"SKU": ("sku", "built_in")} and (await desk.stored()).status == "confirmed"
    assert len(await desk.uses()) == 1, "it was asked all the same"
    await desk.backend.pass_time(timedelta(hours=1))
    await desk.work(models)
    assert len(models.questions) == 1


@pytest.mark.settable_clock
async def test_what_a_run_proposes_meanwhile_is_asked_about_anew(backend: Backend, tenant: Tenant) -> None:
    desk = await _desk(backend, tenant)
    learned = Column(2, "Flim", "price", {}, MappingTier.LEARNED)

    async def run() -> None:
        await desk.proposed((SKU, learned))

    models = Asked(_says((1, "materials", 1.0), (2, "cost", 1.0)), run)
    await desk.work(models)
    assert await desk.read() == {"SKU": ("sku", "built_in"), "Flim": ("price", "learned")}
    await desk.backend.pass_time(timedelta(minutes=1))
    models.says = _says((1, "materials", 1.0))
    await desk.work(models)
    assert (await desk.read())["Zorb"] == ("materials", "model")
    assert [one["position"] for one in models.questions[1].data["columns"]] == [1]
    assert len(await desk.uses()) == 2


@pytest.mark.parametrize(
    "said",
    [_says((0, "title", 1.0)), _says((1, "ignore", 1.0)), _says((1, "materials", 1.0), (7, "cost", 1.0)), "yes", None],
)
async def test_an_answer_about_anything_else_is_void(backend: Backend, tenant: Tenant, said: Any) -> None:
    desk = await _desk(backend, tenant)
    await desk.work(Asked(said))
    assert await desk.read() == {"SKU": ("sku", "built_in")}
    assert (await desk.stored()).asked == (1, 2) and len(await desk.uses()) == 1


async def test_one_that_refuses_is_not_asked_again(backend: Backend, tenant: Tenant) -> None:
    desk = await _desk(backend, tenant)
    models = Asked(ModelRefused("no", usage=USAGE))
    await desk.work(models)
    await desk.proposed((SKU,))
    await desk.work(models)
    assert len(models.questions) == 1 and len(await desk.uses()) == 1


@pytest.mark.settable_clock
async def test_one_that_has_no_time_is_asked_later_and_not_for_ever(backend: Backend, tenant: Tenant) -> None:
    desk = await _desk(backend, tenant)
    models = Asked(ModelLater("busy", after=timedelta(minutes=30)))
    await desk.work(models)
    await desk.backend.pass_time(timedelta(minutes=20))
    await desk.work(models)
    assert len(models.questions) == 1, "it said when"
    for _ in range(9):
        await desk.backend.pass_time(timedelta(days=1))
        await desk.work(models)
    assert len(models.questions) == 6 and await desk.uses() == []
    models.says = _says((1, "materials", 1.0))
    await desk.proposed((SKU,))
    await desk.work(models)
    assert (await desk.read())["Zorb"] == ("materials", "model"), "the next run has it asked anew"


@pytest.mark.settable_clock
async def test_one_that_says_nothing_is_asked_later(backend: Backend, tenant: Tenant) -> None:
    desk = await _desk(backend, tenant)
    models = Asked(_says((1, "materials", 1.0)), asyncio.Event().wait)  # type: ignore[arg-type]
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

    models = Asked(_says((1, "materials", 1.0)), forget)
    await desk.work(models)
    await desk.backend.pass_time(timedelta(hours=1))
    await desk.work(models)
    assert len(models.questions) == 1 and len(await desk.uses()) == 1


async def test_settings_come_of_the_source(backend: Backend, tenant: Tenant) -> None:
    desk = await _desk(backend, tenant)
    await desk.work(Asked(_says((2, "dimensions.width", 1.0))))
    [_, width] = (await desk.stored()).columns
    assert width.settings == {"unit": "in", "unit_by": "market"}
    assert FeedSettings("usd") == Replayer().settings(builders.source(config={"currency": "usd"}), Stream.CATALOGUE)
