"""The judge: its settings, the data that it is shown, and the job that asks a model about open pairs within the budget of the day.

The most that a question can cost is reserved before it is asked, and corrected once it is answered: a process that dies in between leaves
a count of the day that is too high and never too low. A judgement, its outcome and the fence of the job are one transaction, so that no
pair is judged twice in effect.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Protocol

from msgspec import ValidationError

from domain.audit.model import Act
from domain.audit.ports import AuditLog
from domain.catalogue.model import Product, Variant
from domain.catalogue.ports import CatalogueStore
from domain.jobs.model import ClaimedJob
from domain.jobs.ports import JobStore
from domain.jobs.usecases.draining import LEASE
from domain.kernel.errors import Conflict, ModelUnpriced, PreconditionFailed, Unprocessable
from domain.kernel.ids import new_id
from domain.kernel.paging import Filter, PageRequest
from domain.kernel.resource import changed, differing
from domain.matching.features import going_price
from domain.matching.judging import (
    INSTRUCTIONS,
    JUDGE,
    SCHEMA,
    WAITING,
    answer_of,
    data_of,
    delay,
    judging,
    kept,
    midnight,
    outcome_of,
    shown,
    void,
)
from domain.matching.model import (
    SETTINGS,
    SETTINGS_AUDITED,
    DecidedBy,
    Judgement,
    JudgeSettings,
    JudgeSettingsChange,
    MatchPair,
    Outcome,
)
from domain.matching.ports import PairStore
from domain.matching.usecases.merging import products_of
from domain.usage.meters import AI_TOKENS
from domain.usage.model import ModelUse
from domain.usage.ports import UsageMeters
from ports.models import ModelAnswer, ModelLater, ModelQuestion, ModelRefused, Models, ModelsClosed, ModelUsage
from ports.unit_of_work import Tx, UnitOfWork

MOST_BUDGET = 10**12
LEAST_SURE = 0.5
"""Minimum confidence of an answer that may have an effect on its own."""
NOBODY = "No model is configured on this service. The operator can set one with JOINERY_MODELS."
_UNPRICED = "The model has no price on this service; null chooses the service's own model."


async def settings_of(tx: Tx) -> JudgeSettings:
    """Return the tenant's settings; the defaults until somebody sets them."""
    return await tx.store(JudgeSettings).get(SETTINGS) or JudgeSettings()


@dataclass(frozen=True, slots=True)
class JudgeSettingsService:
    """One row a tenant. `offers` answers whether a model (None: the service's own) has a price; it is None without models."""

    offers: Callable[[str | None], bool] | None

    async def update(self, tx: Tx, asked: JudgeSettingsChange, expected: int | None = None) -> JudgeSettings:
        """Change them; `expected` is the version they must be at, or None for any. What is open is judged from then on.

        Raises PreconditionFailed; ModelUnpriced; Unprocessable for switching it on where no model is configured.
        """
        store = tx.store(JudgeSettings)
        stored = await store.get(SETTINGS, lock=True)
        before = stored or JudgeSettings()
        if expected not in (None, before.version):
            raise PreconditionFailed(f"The settings are at version {before.version} by now; read them again.")
        changes = differing(before, asked)
        if not changes:
            return before
        after = changed(before, tx.now, created_at=before.created_at or tx.now, **changes)
        if changes.get("enabled") and self.offers is None:
            raise Unprocessable.of("enabled", "invalid_value", NOBODY)
        # other changes need no model, so that judging can always be switched off
        needs_model = changes.get("enabled") or changes.get("model") is not None
        if needs_model and (self.offers is None or not self.offers(after.model)):
            raise ModelUnpriced.of("model", "invalid_value", _UNPRICED if self.offers else NOBODY)
        await (store.save(after) if stored else store.add(after))
        await tx[AuditLog].add(SETTINGS_AUDITED.updated(before, after))
        if after.enabled:
            await tx[JobStore].add(judging(tx.tenant, f"settings:{after.version}"))
        return after

    async def undo(self, tx: Tx, act: Act) -> None:
        """Restore the settings before the act. Raises what updating raises."""
        for _, change in act.changes("judge_settings"):
            asked: Any = {name: change.before.get(name) for name in change.before.keys() | change.after.keys()}
            await self.update(tx, asked)


async def judged_items(tx: Tx, variants: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
    """Return the data that variants are judged by (`shown`), by id; those that are gone are left out."""
    products = await products_of(tx, variants)
    tied = (await tx[CatalogueStore].tied(products, products)).products if products else {}
    found = ((product, variant) for product in tied.values() for variant in product.variants)
    return {variant.id: _data(product, variant) for product, variant in found if variant.id in variants}


def _data(product: Product, variant: Variant) -> Mapping[str, Any]:
    titles = {"title": product.data.get("title"), "variant_title": variant.data.get("title")}
    price = going_price((offer.id, offer.data) for offer in variant.offers if offer.withdrawn_at is None)
    money = {"currency": price.currency, "price": price.amount} if None not in price else {}
    return {**product.data, **variant.data, **titles, **money}


Items = Callable[[Tx, Sequence[str]], Awaitable[Mapping[str, Mapping[str, Any]]]]
"""The data of variants, by their ids; what is gone is left out."""
_LOG = logging.getLogger("joinery.matching")
_PATIENCE = 120.0
"""Time limit of a model's response in seconds."""
_TURN = 20
"""Number of questions of one attempt before other jobs of the lane run."""
_MOST_PASSED = 50
"""Maximum number of skipped pairs; with more, judging ends until the next trigger."""
_DAY = timedelta(days=1)


class Decisions(Protocol):
    """What merges and dismisses, in the transaction that it is given."""

    async def merge(self, tx: Tx, pair_id: str, by: DecidedBy, reason: str | None, /) -> MatchPair:
        """Merge the pair's items. Raises Conflict if it is not open."""
        ...

    async def dismiss(self, tx: Tx, pair_id: str, by: DecidedBy, reason: str | None, /) -> MatchPair:
        """Dismiss the pair. Raises Conflict if it is not open."""
        ...


@dataclass(frozen=True, slots=True)
class _UseFilter(Filter):
    task: str | None = None


@dataclass(frozen=True, slots=True)
class _Case:
    """A pair with its data, and the reserved cost of its question."""

    pair: MatchPair
    items: Mapping[str, Mapping[str, Any]]
    question: ModelQuestion
    use: ModelUse


@dataclass(slots=True)
class _Turn:
    """One attempt of the job: preceding failures, and the pairs skipped for now."""

    job: ClaimedJob
    tries: int
    passed: list[str]
    day: datetime | None = None
    spent: int = 0
    """Micro-dollars of that day, with what is reserved for the question in hand."""


@dataclass(frozen=True, slots=True)
class Judging:
    """The handler of `matching.judge` jobs. No connection is held while waiting for the model."""

    uow: UnitOfWork
    models: Models | None
    decisions: Decisions
    items: Items = judged_items
    patience: float = _PATIENCE

    async def __call__(self, job: ClaimedJob, lost: asyncio.Event) -> None:
        """Carry out one job."""
        turn = _Turn(job, int(job.args.get("tries", 0)), [*map(str, job.args.get("passed", ()))])
        for _ in range(_TURN):
            case = await self._next(turn)
            if case is None or not await self._judged(turn, case):
                return
        async with self.uow.begin(job.tenant, job.context("judge")) as tx:
            await _again(tx, turn, job.id, None)

    async def _next(self, turn: _Turn) -> _Case | None:
        """Return the next pair to ask about, with its cost reserved; None once the job has ended or is put off."""
        job = turn.job
        async with self.uow.begin(job.tenant, job.context("judge")) as tx:
            settings = await settings_of(tx)
            budget = settings.daily_budget_micros
            open_: Sequence[MatchPair] = ()
            if settings.enabled and self.models is not None and self.models.offers(settings.model):
                open_ = await tx[PairStore].unjudged(_MOST_PASSED + 1)
            for pair in sorted(open_, key=lambda pair: pair.id in turn.passed):
                case = await self._case(tx, pair, settings)
                if case is None:
                    continue
                cost = case.use.cost_micros
                if cost > budget:
                    break
                today = midnight(tx.now)
                if turn.day != today:  # nobody else judges for this tenant meanwhile
                    turn.day, turn.spent = today, await _spent(tx)
                if turn.spent + cost > budget:
                    await _again(tx, turn, WAITING, today + _DAY)
                    return None
                await tx.store(ModelUse).add(case.use)
                turn.spent += cost
                await tx[JobStore].hold(job, LEASE)
                return case
            await tx[JobStore].finish(job)
        return None

    async def _case(self, tx: Tx, pair: MatchPair, settings: JudgeSettings) -> _Case | None:
        """Return the question of a pair; None if an item no longer exists or the question is not admitted."""
        items = await self.items(tx, (pair.left, pair.right))
        if self.models is None or pair.left not in items or pair.right not in items:
            return None
        data = data_of(pair, shown(items[pair.left]), shown(items[pair.right]))
        question = ModelQuestion(JUDGE, INSTRUCTIONS, data, SCHEMA, settings.model)
        try:
            most = self.models.most(question)
        except ModelRefused as refusal:
            _LOG.warning("a pair cannot be asked about", extra={"pair": pair.id, "reason": str(refusal)})
            return None
        use = ModelUse(id=new_id("use"), task=JUDGE, subject=pair.id, created_at=tx.now, **asdict(most))
        return _Case(pair, items, question, use)

    async def _judged(self, turn: _Turn, case: _Case) -> bool:
        """Ask the model and store the outcome; return False once the job has ended or is postponed."""
        assert self.models is not None
        try:
            async with asyncio.timeout(self.patience):
                answer = await self.models.ask(case.question)
        except (ModelsClosed, ModelLater, TimeoutError) as failure:
            await self._put_off(turn, case, failure)
            return False
        except ModelRefused as refusal:
            usage, note = refusal.usage, kept(str(refusal))
            judgement = _judgement(case, usage, Outcome.REFUSED, note=note)
        else:
            usage, judgement = answer.usage, _heard(case, answer)
        job, before = turn.job, case.pair
        async with self.uow.begin(job.tenant, job.context("judge")) as tx:
            await tx[CatalogueStore].take_turn(merging=True)  # before all other locks, as everywhere
            await _correct(tx, turn, case.use, usage)
            now = await tx[PairStore].get(before.id, lock=True)
            # only for the pair that was asked about
            if now == before and await self.items(tx, (before.left, before.right)) == case.items:
                await self._decide(tx, before, judgement)
            await tx[JobStore].hold(job, LEASE)
        turn.tries = 0
        return True

    async def _decide(self, tx: Tx, pair: MatchPair, judgement: Judgement) -> None:
        """Merge, dismiss or keep the pair by the current settings; a decision stores the judgement as its reason."""
        outcome = judgement.outcome
        if outcome == Outcome.LEFT_OPEN:
            outcome = outcome_of(judgement.choice, judgement.confidence or 0.0, pair, await settings_of(tx))
        decide = {Outcome.MERGED: self.decisions.merge, Outcome.DISMISSED: self.decisions.dismiss}.get(outcome)
        if decide is not None:
            try:
                async with tx.savepoint():
                    await decide(tx, pair.id, DecidedBy.JUDGE, judgement.note)
            except Conflict as refusal:
                outcome, judgement = Outcome.LEFT_OPEN, replace(judgement, note=kept(str(refusal)))
        decided = await tx[PairStore].get(pair.id, lock=True)
        if decided is not None:
            judgement = replace(judgement, outcome=outcome, judged_at=tx.now)
            await tx[PairStore].save(changed(decided, tx.now, judgement=judgement))

    async def _put_off(self, turn: _Turn, case: _Case, failure: ModelsClosed | ModelLater | TimeoutError) -> None:
        """Postpone the question, up to a limit; then the next trigger starts again."""
        turn.tries += 1
        turn.passed = [*(id for id in turn.passed if id != case.pair.id), case.pair.id][-_MOST_PASSED:]
        wait = delay(turn.tries)
        reason = str(failure) or "it said nothing"
        _LOG.info("a model is asked later", extra={"pair": case.pair.id, "reason": reason})
        async with self.uow.begin(turn.job.tenant, turn.job.context("judge")) as tx:
            if not isinstance(failure, TimeoutError):  # the cost of which is unknown, so that all stays reserved
                await _correct(tx, turn, case.use, failure.usage)
            if wait is None:
                await tx[JobStore].finish(turn.job)
            else:
                after = failure.after if isinstance(failure, ModelLater) else None
                await _again(tx, turn, WAITING, tx.now + max(wait, min(after or wait, _DAY)))


async def _again(tx: Tx, turn: _Turn, reason: str, run_at: datetime | None) -> None:
    """Continue in a new job with the state of this one; a job that already waits serves this one as well."""
    await tx[JobStore].finish(turn.job)
    await tx[JobStore].add(judging(turn.job.tenant, reason, turn.tries, turn.passed, run_at))


def _heard(case: _Case, answer: ModelAnswer) -> Judgement:
    """Return the judgement of an answer; of an answer with invalid quotes only the choice."""
    try:
        said = answer_of(answer.value)
    except ValidationError as fault:
        return _judgement(case, answer.usage, Outcome.FAILED, note=f"The answer is of another shape: {fault}.")
    made = _judgement(case, answer.usage, Outcome.LEFT_OPEN, choice=said.choice, confidence=said.confidence)
    subject, candidate = (shown(case.items[id]) for id in (case.pair.left, case.pair.right))
    if why := void(said, subject, candidate):
        return replace(made, outcome=Outcome.FAILED, note=why)
    return replace(made, reasons=said.reasons, note=said.note or None)


def _judgement(case: _Case, usage: ModelUsage | None, outcome: Outcome, **said: Any) -> Judgement:
    model = usage.model if usage else case.use.model
    return Judgement(new_id("jud"), model, outcome, case.use.created_at, **said)


async def _correct(tx: Tx, turn: _Turn, reserved: ModelUse, usage: ModelUsage | None) -> None:
    """Replace the reserved cost by the actual cost."""
    turn.spent += (usage.cost_micros if usage else 0) - reserved.cost_micros
    if usage is None:
        await tx.store(ModelUse).remove(reserved.id)
    else:
        await tx.store(ModelUse).save(replace(reserved, **asdict(usage)))
        await tx[UsageMeters].count(AI_TOKENS, usage.input_tokens + usage.output_tokens, reserved.id)


async def _spent(tx: Tx) -> int:
    """Micro-dollars that judging took of the tenant since the day began; ids rise with time, so the newest come first."""
    since, total, key = midnight(tx.now), 0, None
    while True:
        page = await tx.store(ModelUse).page(PageRequest(100, key), _UseFilter(JUDGE))
        today = [use.cost_micros for use in page.items if use.created_at >= since]
        total += sum(today)
        if not page.has_more or len(today) < len(page.items):
            return total
        key = page.next_key
