"""The judge: its settings, the data that it is shown, and the job that asks a model about open pairs within the budget of the day.

The most that a question can cost is reserved before it is asked, and corrected once it is answered: a process that dies in between leaves
a count of the day that is too high and never too low. A judgement, its outcome and the fence of the job are one transaction, so that no
pair is judged twice in effect.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

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
from domain.kernel.resource import changed
from domain.matching.features import going_price
from domain.matching.judging import (
    INSTRUCTIONS,
    JUDGE,
    SCHEMA,
    WAITING,
    BadAnswer,
    JudgedItem,
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

MOST_BUDGET: Final = 10**12
LEAST_SURE: Final = 0.5
"""An answer that is less sure than this may do nothing by itself."""
NOBODY: Final = "No model is configured on this service, so there is nobody who could judge; the operator sets one by JOINERY_MODELS."


async def settings_of(tx: Tx) -> JudgeSettings:
    """Return the tenant's settings; the defaults until somebody sets them."""
    return await tx.store(JudgeSettings).get(SETTINGS) or JudgeSettings()


@dataclass(frozen=True, slots=True)
class JudgeSettingsService:
    """One row a tenant. `offers` tells whether a model (None: the service's own) can be asked; None where nobody can be."""

    offers: Callable[[str | None], bool] | None

    async def get(self, tx: Tx) -> JudgeSettings:
        """Return the settings as they hold."""
        return await settings_of(tx)

    async def update(self, tx: Tx, asked: JudgeSettingsChange, expected: int | None = None) -> JudgeSettings:
        """Change them; `expected` is the version they must be at, or None for any. What is open is judged from then on.

        Raises PreconditionFailed; ModelUnpriced; Unprocessable for values out of range, and for switching it on where no
        model is configured.
        """
        stored = await tx.store(JudgeSettings).get(SETTINGS, lock=True)
        before = stored or JudgeSettings()
        if expected not in (None, before.version):
            raise PreconditionFailed(f"The settings are at version {before.version} by now; read them again.")
        changes: dict[str, Any] = {name: value for name, value in asked.items() if getattr(before, name) != value}
        self._refuse(changes, replace(before, **changes))
        if not changes:
            return before
        made = before.created_at or tx.now
        after = replace(before, **changes, version=before.version + 1, created_at=made, updated_at=tx.now)
        if stored:
            await tx.store(JudgeSettings).save(after)
        else:
            await tx.store(JudgeSettings).add(after)
        await tx[AuditLog].add(SETTINGS_AUDITED.updated(before, after))
        if after.enabled:
            await tx[JobStore].add(judging(tx.tenant, f"settings:{after.version}"))
        return after

    def _refuse(self, changes: dict[str, Any], after: JudgeSettings) -> None:
        """Only what is being changed is looked at, so that judging can always be switched off."""
        for name in ("auto_merge_at", "auto_dismiss_at"):
            if name in changes and not LEAST_SURE <= changes[name] <= 1:
                raise Unprocessable.of(name, "invalid_value", f"Must be from {LEAST_SURE} to 1.")
        if not 0 <= after.daily_budget_micros <= MOST_BUDGET:
            raise Unprocessable.of("daily_budget_micros", "invalid_value", f"Must be from 0 to {MOST_BUDGET}.")
        if changes.get("enabled") and self.offers is None:
            raise Unprocessable.of("enabled", "invalid_value", NOBODY)
        needs_model = changes.get("model") is not None or changes.get("enabled")
        if needs_model and (self.offers is None or not self.offers(after.model)):
            unpriced = "The model has no price on this service; null chooses the service's own model."
            raise ModelUnpriced.of("model", "invalid_value", unpriced if self.offers else NOBODY)


async def judged_items(tx: Tx, variants: Sequence[str]) -> Mapping[str, JudgedItem]:
    """By variant; those that are gone are left out."""
    products = await products_of(tx, variants)
    tied = await tx[CatalogueStore].tied(products, products) if products else None
    if tied is None:
        return {}
    sought = set(variants)
    found = ((product, one) for product in tied.products.values() for one in product.variants if one.id in sought)
    return {variant.id: _item(product, variant) for product, variant in found}


def _item(product: Product, variant: Variant) -> JudgedItem:
    data: dict[str, Any] = {**product.data, **variant.data, "variant_title": variant.data.get("title")}
    offers = ((offer.id, offer.data) for offer in variant.offers if offer.withdrawn_at is None)
    price = going_price(offers)
    if price.amount is not None and price.currency is not None:
        data["currency"], data["price"] = price.currency, price.amount
    return JudgedItem(variant.id, product.id, product.data.get("title"), product.data.get("brand"), data)


Items = Callable[[Tx, Sequence[str]], Awaitable[Mapping[str, JudgedItem]]]
"""The data of variants, by their ids; what is gone is left out."""
Pairs = Callable[[Tx], PairStore]
"""The pairs of the transaction's tenant."""
_LOG: Final = logging.getLogger("joinery.matching")
_PATIENCE: Final = 120.0
"""Seconds until a model that says nothing counts as one to ask later."""
_TURN: Final = 20
"""Questions that one attempt puts; then others of the lane have their turn."""
_MOST_PASSED: Final = 50
"""Pairs that may be passed over; with more of them judging ends, and begins anew with the next reason to."""


class Decisions(Protocol):
    """What merges and dismisses, in the transaction that it is given."""

    async def merge(self, tx: Tx, pair_id: str, decided_by: DecidedBy, reason: str | None) -> MatchPair:
        """Have the pair's items be one. Raises Conflict when it is not open."""
        ...

    async def dismiss(self, tx: Tx, pair_id: str, decided_by: DecidedBy, reason: str | None) -> MatchPair:
        """Have them be different for good. Raises Conflict when it is not open."""
        ...


@dataclass(frozen=True, slots=True)
class _UseFilter(Filter):
    task: str | None = None


@dataclass(frozen=True, slots=True)
class _Case:
    """A pair with the data that it is judged by, and what was put down of asking about it."""

    pair: MatchPair
    subject: JudgedItem
    candidate: JudgedItem
    question: ModelQuestion
    use: ModelUse

    @property
    def items(self) -> dict[str, JudgedItem]:
        return {self.pair.left: self.subject, self.pair.right: self.candidate}


@dataclass(slots=True)
class _Turn:
    """One attempt of the job: how often asking failed in a row before, and which pairs are passed over for now."""

    job: ClaimedJob
    tries: int
    passed: list[str] = field(default_factory=list)
    day: datetime | None = None
    spent: int = 0
    """Micro-dollars of that day, with what is put down of the question in hand."""

    @classmethod
    def of(cls, job: ClaimedJob) -> "_Turn":
        return cls(job, int(job.args.get("tries", 0)), [str(id) for id in job.args.get("passed", ())])


@dataclass(frozen=True, slots=True)
class Judging:
    """The handler of `matching.judge` jobs. No connection is held while the model thinks."""

    uow: UnitOfWork
    models: Models | None
    pairs: Pairs
    items: Items
    decisions: Decisions
    patience: float = _PATIENCE

    async def __call__(self, job: ClaimedJob, lost: asyncio.Event) -> None:
        """Carry out one job."""
        turn = _Turn.of(job)
        for _ in range(_TURN):
            case = await self._case(turn)
            if case is None:
                return
            if not await self._judged(turn, case):
                return
        async with self.uow.begin(job.tenant, job.context("judge")) as tx:
            await _again(tx, turn, job.id, None)

    async def _case(self, turn: _Turn) -> _Case | None:
        """Return the next pair to ask about, with its cost put down; None once the job has ended or is put off."""
        job = turn.job
        async with self.uow.begin(job.tenant, job.context("judge")) as tx:
            settings = await settings_of(tx)
            for pair in await self._open(tx, turn, settings):
                case = await self._made(tx, pair, settings)
                if case is None:
                    continue
                if case.use.cost_micros > settings.daily_budget_micros:
                    break
                await _count(tx, turn)
                if turn.spent + case.use.cost_micros > settings.daily_budget_micros:
                    await _again(tx, turn, WAITING, midnight(tx.now) + timedelta(days=1))
                    return None
                await tx.store(ModelUse).add(case.use)
                turn.spent += case.use.cost_micros
                await tx[JobStore].hold(job, LEASE)
                return case
            await tx[JobStore].finish(job)
        return None

    async def _open(self, tx: Tx, turn: _Turn, settings: JudgeSettings) -> Sequence[MatchPair]:
        """Return what may be asked about, likeliest first, but last what is passed over."""
        if not settings.enabled or self.models is None or not self.models.offers(settings.model):
            return ()
        found = await self.pairs(tx).unjudged(_MOST_PASSED + 1)
        return sorted(found, key=lambda pair: pair.id in turn.passed)

    async def _made(self, tx: Tx, pair: MatchPair, settings: JudgeSettings) -> _Case | None:
        """None for a pair that cannot be asked about: an item is gone, or the question is never let in."""
        found = await self.items(tx, (pair.left, pair.right))
        if self.models is None or pair.left not in found or pair.right not in found:
            return None
        subject, candidate = found[pair.left], found[pair.right]
        data = data_of(pair, shown(subject), shown(candidate))
        question = ModelQuestion(JUDGE, INSTRUCTIONS, data, SCHEMA, settings.model)
        try:
            most = self.models.most(question)
        except ModelRefused as refusal:
            _LOG.warning("a pair cannot be asked about", extra={"pair": pair.id, "reason": str(refusal)})
            return None
        return _Case(pair, subject, candidate, question, _use(new_id("use"), pair.id, most, tx.now))

    async def _judged(self, turn: _Turn, case: _Case) -> bool:
        """Ask, and put down what comes of it; False once the job has ended or is put off."""
        assert self.models is not None
        try:
            async with asyncio.timeout(self.patience):
                answer = await self.models.ask(case.question)
        except ModelsClosed as closed:
            return await self._later(turn, case, str(closed), None, answered=False, usage=closed.usage)
        except ModelRefused as refusal:
            made = _judgement(case, refusal.usage, Outcome.REFUSED, note=kept(str(refusal)))
            return await self._put_down(turn, case, made, refusal.usage)
        except ModelLater as failure:
            return await self._later(turn, case, str(failure), failure.after, answered=False, usage=failure.usage)
        except TimeoutError:
            return await self._later(turn, case, "it said nothing", None, answered=True, usage=None)
        return await self._put_down(turn, case, _heard(case, answer), answer.usage)

    async def _put_down(self, turn: _Turn, case: _Case, judgement: Judgement, usage: ModelUsage | None) -> bool:
        """Return the judgement, what it leads to and what it took, all or nothing, and only for the very pair that was asked about."""
        job, before = turn.job, case.pair
        async with self.uow.begin(job.tenant, job.context("judge")) as tx:
            await tx[CatalogueStore].take_turn(merging=True)  # before anything else is locked, as everybody does
            await _correct(tx, turn, case.use, usage)
            now = await self.pairs(tx).get(before.id, lock=True)
            if now == before and dict(await self.items(tx, (before.left, before.right))) == case.items:
                await self._decide(tx, before, judgement, await settings_of(tx))
            await tx[JobStore].hold(job, LEASE)
        turn.tries = 0
        return True

    async def _decide(self, tx: Tx, pair: MatchPair, judgement: Judgement, settings: JudgeSettings) -> None:
        """Merge, dismiss or leave it, by the settings of now; what is decided keeps the judgement as its reason."""
        outcome = judgement.outcome
        if outcome not in (Outcome.REFUSED, Outcome.FAILED):
            outcome = outcome_of(judgement.choice, judgement.confidence or 0.0, pair, settings)
        decide = {Outcome.MERGED: self.decisions.merge, Outcome.DISMISSED: self.decisions.dismiss}.get(outcome)
        if decide is not None:
            try:
                async with tx.savepoint():
                    await decide(tx, pair.id, DecidedBy.JUDGE, judgement.note)
            except Conflict as refusal:
                outcome, judgement = Outcome.LEFT_OPEN, replace(judgement, note=kept(str(refusal)))
        decided = await self.pairs(tx).get(pair.id, lock=True)
        if decided is not None:
            judgement = replace(judgement, outcome=outcome, judged_at=tx.now)
            await self.pairs(tx).save(changed(decided, tx.now, judgement=judgement))

    async def _later(
        self,
        turn: _Turn,
        case: _Case,
        reason: str,
        after: timedelta | None,
        *,
        answered: bool,
        usage: ModelUsage | None,
    ) -> bool:
        """Asked again, but not without end: then the next reason to judge has it begin anew.

        `answered`: nobody knows what it took, so that what was put down stays.
        """
        turn.tries += 1
        turn.passed = [*(id for id in turn.passed if id != case.pair.id), case.pair.id][-_MOST_PASSED:]
        wait = delay(turn.tries)
        _LOG.info("a model is asked later", extra={"pair": case.pair.id, "reason": reason})
        async with self.uow.begin(turn.job.tenant, turn.job.context("judge")) as tx:
            if not answered:
                await _correct(tx, turn, case.use, usage)
            if wait is None:
                await tx[JobStore].finish(turn.job)
            else:
                await _again(tx, turn, WAITING, tx.now + max(wait, min(after or wait, timedelta(days=1))))
        return False


async def _again(tx: Tx, turn: _Turn, reason: str, run_at: datetime | None) -> None:
    """Go on in a new job, which knows what this one learned; whatever waits already does so for this one as well."""
    await tx[JobStore].finish(turn.job)
    await tx[JobStore].add(judging(turn.job.tenant, reason, turn.tries, turn.passed, run_at))


def _heard(case: _Case, answer: ModelAnswer) -> Judgement:
    """Return what is kept of an answer: nothing but its choice where its quotes do not stand in what was shown."""
    try:
        said = answer_of(answer.value)
    except BadAnswer as fault:
        return _judgement(case, answer.usage, Outcome.FAILED, note=f"The answer is of another shape: {fault}.")
    made = _judgement(case, answer.usage, Outcome.LEFT_OPEN, choice=said.choice, confidence=said.confidence)
    if why := void(said, shown(case.subject), shown(case.candidate)):
        return replace(made, outcome=Outcome.FAILED, note=why)
    return replace(made, reasons=said.reasons, note=said.note or None)


def _judgement(
    case: _Case,
    usage: ModelUsage | None,
    outcome: Outcome,
    *,
    choice: str | None = None,
    confidence: float | None = None,
    note: str | None = None,
) -> Judgement:
    model = usage.model if usage else case.use.model
    return Judgement(new_id("jud"), model, outcome, case.use.created_at, choice, confidence, (), note)


def _use(id: str, pair: str, usage: ModelUsage, now: datetime) -> ModelUse:
    return ModelUse(id, JUDGE, pair, usage.model, usage.input_tokens, usage.output_tokens, usage.cost_micros, now)


async def _correct(tx: Tx, turn: _Turn, reserved: ModelUse, usage: ModelUsage | None) -> None:
    """What asking truly took, in place of the most that it could have; nothing where nothing was."""
    turn.spent += (usage.cost_micros if usage else 0) - reserved.cost_micros
    if usage is None:
        await tx.store(ModelUse).remove(reserved.id)
    else:
        await tx.store(ModelUse).save(_use(reserved.id, reserved.subject, usage, reserved.created_at))
        await tx[UsageMeters].count(AI_TOKENS, usage.input_tokens + usage.output_tokens, reserved.id)


async def _count(tx: Tx, turn: _Turn) -> None:
    """Have the turn know what was spent today: counted once a day, for nobody else judges for this tenant meanwhile."""
    if turn.day != midnight(tx.now):
        turn.day, turn.spent = midnight(tx.now), await _spent(tx)


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


async def take_back_settings(settings: JudgeSettingsService, tx: Tx, act: Act) -> None:
    """The judge's settings as they were. Raises what setting them raises."""
    for _, change in act.changes("judge_settings"):
        asked: Any = {name: change.before.get(name) for name in change.before.keys() | change.after.keys()}
        await settings.update(tx, asked)
