"""The judge: its settings, the data for the model, and the job that judges open pairs within a daily budget and with credit.

The maximum cost of a request is reserved before the request is sent, and corrected after the answer. If the process
dies in between, the recorded cost of the day is too high, but never too low. A judgement, its outcome and the update of
the job are stored in one transaction, so every judgement takes effect once.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Protocol

from msgspec import ValidationError

from domain.audit.model import AuditAct
from domain.audit.ports import AuditLog
from domain.catalogue.model import Product, Variant
from domain.catalogue.ports import CatalogueStore
from domain.credits.usecases.ledger import CreditLedger
from domain.jobs.model import ClaimedJob
from domain.jobs.ports import JobStore
from domain.jobs.usecases.lane_processor import LEASE
from domain.kernel.errors import Conflict, PreconditionFailed, Unprocessable
from domain.kernel.ids import new_id
from domain.kernel.resource import select_differing, with_changes
from domain.matching.features import find_lowest_price
from domain.matching.judge_answers import (
    ANSWER_SCHEMA,
    INSTRUCTIONS,
    JUDGING_JOB,
    WAITING_REASON,
    build_model_data,
    build_visible_texts,
    compute_judging_delay,
    create_judging_job,
    decide_outcome,
    find_fault,
    parse_answer,
    sanitise_model_text,
)
from domain.matching.model import (
    AUDITED_SETTINGS_FIELDS,
    JUDGE_SETTINGS_ID,
    DecidedBy,
    Judgement,
    JudgementOutcome,
    JudgeSettings,
    JudgeSettingsChange,
    MatchPair,
)
from domain.matching.ports import PairStore
from domain.matching.usecases.merges import find_products_of_variants
from domain.usage.model import ModelUse
from domain.usage.model_budget import (
    NO_MODEL_MESSAGE,
    create_model_use,
    find_start_of_day,
    load_spent_today,
    replace_reserved_use,
    require_priced_model,
)
from ports.language_models import (
    LanguageModels,
    ModelAccessRefused,
    ModelOutput,
    ModelPrompt,
    ModelRefused,
    ModelUnavailable,
    ModelUsage,
)
from ports.unit_of_work import Tx, UnitOfWork

MIN_CONFIDENCE = 0.5
"""Minimum confidence at which an answer may merge or dismiss a pair automatically."""


async def load_judge_settings(tx: Tx) -> JudgeSettings:
    """Return the judge settings of the tenant, or the defaults if none are stored."""
    return await tx.store(JudgeSettings).get(JUDGE_SETTINGS_ID) or JudgeSettings()


@dataclass(frozen=True, slots=True)
class JudgeSettingsService:
    """Use cases of a tenant's judge settings, which are stored as one row.

    Attributes:
        has_price: Returns whether a model has a price (None means the default model). The attribute is None if no
            model is configured.
    """

    has_price: Callable[[str | None], bool] | None

    async def update(self, tx: Tx, change: JudgeSettingsChange, expected_version: int | None = None) -> JudgeSettings:
        """Change the settings; if the judge is enabled afterwards, queue a job for the open pairs.

        Args:
            tx: The transaction.
            change: The changes.
            expected_version: The version that the settings must have, or None for any version.

        Raises:
            PreconditionFailed: The settings have another version.
            ModelUnpriced: The model has no price.
            Unprocessable: The judge was enabled without a configured model.
        """
        store = tx.store(JudgeSettings)
        stored = await store.get(JUDGE_SETTINGS_ID, lock=True)
        before = stored or JudgeSettings()
        if expected_version not in (None, before.version):
            raise PreconditionFailed(
                f"The settings have changed and are now at version {before.version}. Read the settings, then send "
                "the change again."
            )
        changes = select_differing(before, change)
        if not changes:
            return before
        after = with_changes(before, tx.now, created_at=before.created_at or tx.now, **changes)
        if changes.get("enabled") and self.has_price is None:
            raise Unprocessable.for_field("enabled", "invalid_value", NO_MODEL_MESSAGE)
        # other changes need no model, so judging can always be disabled
        needs_model = changes.get("enabled") or changes.get("model") is not None
        if needs_model:
            require_priced_model(self.has_price, after.model)
        await (store.save(after) if stored else store.add(after))
        await tx[AuditLog].add(AUDITED_SETTINGS_FIELDS.describe_update(before, after))
        if after.enabled:
            await tx[JobStore].add(create_judging_job(tx.tenant, f"settings:{after.version}"))
        return after

    async def undo_change(self, tx: Tx, act: AuditAct) -> None:
        """Restore the settings to their state before the act. Raises the errors of `update`."""
        for _, change in act.list_changes("judge_settings"):
            settings: Any = {name: change.before.get(name) for name in change.before.keys() | change.after.keys()}
            await self.update(tx, settings)


async def load_judged_items(tx: Tx, variants: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
    """Return the data of the variants for the model, by ID; deleted variants are omitted."""
    products = await find_products_of_variants(tx, variants)
    products_by_id = (await tx[CatalogueStore].load_cluster(products, products)).products if products else {}
    product_variants = ((product, variant) for product in products_by_id.values() for variant in product.variants)
    return {
        variant.id: _build_item_data(product, variant)
        for product, variant in product_variants
        if variant.id in variants
    }


def _build_item_data(product: Product, variant: Variant) -> Mapping[str, Any]:
    """Return the data of a variant and its product for the model, with both titles and the lowest price."""
    titles = {"title": product.data.get("title"), "variant_title": variant.data.get("title")}
    price = find_lowest_price((offer.id, offer.data) for offer in variant.offers if offer.withdrawn_at is None)
    money = {"currency": price.currency, "price": price.amount} if None not in price else {}
    return {**product.data, **variant.data, **titles, **money}


VariantDataLoader = Callable[[Tx, Sequence[str]], Awaitable[Mapping[str, Mapping[str, Any]]]]
"""Function that loads the data of variants for the model, by ID; deleted variants are omitted."""
_LOG = logging.getLogger("joinery.matching")
_MAX_RESPONSE_SECONDS = 120.0
"""Maximum time to wait for a model's response, in seconds."""
_MAX_REQUESTS = 20
"""Maximum number of requests of one attempt, so that other jobs of the organisation can run."""
_MAX_POSTPONED = 50
"""Maximum number of postponed pairs; with more, the pair postponed first returns to the usual order."""
_DAY = timedelta(days=1)


class PairDecisions(Protocol):
    """Port for merging and dismissing pairs within the given transaction."""

    async def merge_pair(self, tx: Tx, pair_id: str, decider: DecidedBy, reason: str | None, /) -> MatchPair:
        """Merge the items of the pair. Raises Conflict if the pair is not open."""
        ...

    async def dismiss_pair(self, tx: Tx, pair_id: str, decider: DecidedBy, reason: str | None, /) -> MatchPair:
        """Dismiss the pair. Raises Conflict if the pair is not open."""
        ...


@dataclass(frozen=True, slots=True)
class _PreparedRequest:
    """Request to the model about a pair.

    Attributes:
        items: The data of the pair's variants by ID.
        use: The reserved cost of the request.
    """

    pair: MatchPair
    items: Mapping[str, Mapping[str, Any]]
    request: ModelPrompt
    use: ModelUse


async def resume_judging(tx: Tx, cause: str) -> None:
    """Queue a job of the judge, which may wait for credit; `cause` is what made credit available."""
    await tx[JobStore].add(create_judging_job(tx.tenant, f"credit:{cause}"))


@dataclass(slots=True)
class _Attempt:
    """State of one attempt of the job.

    Attributes:
        failures: The number of consecutive failed requests before, including those of preceding jobs.
        postponed: The IDs of pairs that are judged after all others, because requests about them failed.
        day: The start of the day to which `spent_micros` belongs, or None before the first request.
        spent_micros: The cost of the day in millionths of a dollar, including the reserved cost of the current
            request, without requests that are paid with credit.
    """

    job: ClaimedJob
    failures: int
    postponed: list[str]
    day: datetime | None = None
    spent_micros: int = 0


@dataclass(frozen=True, slots=True)
class JudgeJob:
    """Handler of `matching.judge` jobs. No database connection is held while waiting for the model.

    Attributes:
        models: The language models, or None if none is configured.
        decisions: Merges and dismisses pairs.
        ledger: The credit that pays for requests when the budget of the day is used up.
        load_items: Loads the data of variants for the model.
        response_seconds: The time limit for the response of the model in seconds.
    """

    uow: UnitOfWork
    models: LanguageModels | None
    decisions: PairDecisions
    ledger: CreditLedger
    load_items: VariantDataLoader = load_judged_items
    response_seconds: float = _MAX_RESPONSE_SECONDS

    async def __call__(self, job: ClaimedJob, lost: asyncio.Event) -> None:
        """Judge up to 20 open pairs; after 20 pairs, queue a further job for the rest."""
        attempt = _Attempt(job, int(job.args.get("tries", 0)), [*map(str, job.args.get("passed", ()))])
        for _ in range(_MAX_REQUESTS):
            prepared = await self._prepare_next_request(attempt)
            if prepared is None or not await self._judge_pair(attempt, prepared):
                return
        async with self.uow.begin(job.tenant, job.create_context("judge")) as tx:
            await _queue_next_job(tx, attempt, job.id, None)

    async def _prepare_next_request(self, attempt: _Attempt) -> _PreparedRequest | None:
        """Return the next request with its cost reserved; None if the job was finished or postponed."""
        job = attempt.job
        async with self.uow.begin(job.tenant, job.create_context("judge")) as tx:
            settings = await load_judge_settings(tx)
            budget = settings.daily_budget_micros
            open_pairs: Sequence[MatchPair] = ()
            if settings.enabled and self.models is not None and self.models.is_configured(settings.model):
                open_pairs = await tx[PairStore].list_unjudged(_MAX_POSTPONED + 1)
            for pair in sorted(open_pairs, key=lambda pair: pair.id in attempt.postponed):
                prepared = await self._prepare_request(tx, pair, settings)
                if prepared is None:
                    continue
                cost = prepared.use.cost_micros
                today = find_start_of_day(tx.now)
                if attempt.day != today:  # no other job judges for this tenant meanwhile
                    attempt.day, attempt.spent_micros = today, await load_spent_today(tx, JUDGING_JOB)
                if attempt.spent_micros + cost <= budget:
                    attempt.spent_micros += cost
                elif await self.ledger.reserve(tx, prepared.use.id, await self.ledger.compute_charge(tx, prepared.use)):
                    prepared = replace(prepared, use=replace(prepared.use, prepaid=True))
                elif cost > budget:
                    break
                else:
                    await _queue_next_job(tx, attempt, WAITING_REASON, today + _DAY)
                    return None
                await tx.store(ModelUse).add(prepared.use)
                await tx[JobStore].renew_lease(job, LEASE)
                return prepared
            await tx[JobStore].finish(job)
        return None

    async def _prepare_request(self, tx: Tx, pair: MatchPair, settings: JudgeSettings) -> _PreparedRequest | None:
        """Return the request about a pair; None if an item no longer exists or the models refuse the request."""
        items = await self.load_items(tx, (pair.left, pair.right))
        if self.models is None or pair.left not in items or pair.right not in items:
            return None
        data = build_model_data(pair, build_visible_texts(items[pair.left]), build_visible_texts(items[pair.right]))
        request = ModelPrompt(JUDGING_JOB, INSTRUCTIONS, data, ANSWER_SCHEMA, settings.model)
        try:
            max_usage = self.models.estimate_max_usage(request)
        except ModelRefused as refusal:
            _LOG.warning("model request about a pair refused", extra={"pair": pair.id, "reason": str(refusal)})
            return None
        return _PreparedRequest(pair, items, request, create_model_use(tx, JUDGING_JOB, pair.id, max_usage))

    async def _judge_pair(self, attempt: _Attempt, prepared: _PreparedRequest) -> bool:
        """Send the request to the model and store the judgement; return False if the job was finished or postponed."""
        assert self.models is not None
        try:
            async with asyncio.timeout(self.response_seconds):
                answer = await self.models.generate(prepared.request)
        except (ModelAccessRefused, ModelUnavailable, TimeoutError) as failure:
            await self._postpone(attempt, prepared, failure)
            return False
        except ModelRefused as refusal:
            usage, note = refusal.usage, sanitise_model_text(str(refusal))
            judgement = _create_judgement(prepared, usage, JudgementOutcome.REFUSED, note=note)
        else:
            usage, judgement = answer.usage, _build_judgement(prepared, answer)
        job, before = attempt.job, prepared.pair
        async with self.uow.begin(job.tenant, job.create_context("judge")) as tx:
            await tx[CatalogueStore].lock_for_writing(merging=True)  # before all other locks, as everywhere
            await _record_actual_cost(tx, attempt, prepared.use, usage)
            current = await tx[PairStore].get(before.id, lock=True)
            # only if the pair has not changed since the request
            if current == before and await self.load_items(tx, (before.left, before.right)) == prepared.items:
                await self._apply_judgement(tx, before, judgement)
            await self._settle(tx, prepared.use, usage)  # late, because the ledger stays locked
            await tx[JobStore].renew_lease(job, LEASE)
        attempt.failures = 0
        return True

    async def _settle(self, tx: Tx, reserved: ModelUse, usage: ModelUsage | None) -> None:
        """Settle the credit that was reserved for a request at the actual cost; without usage, release the credit."""
        if reserved.prepaid and usage is not None:
            await self.ledger.settle(tx, reserved.id, await self.ledger.compute_charge(tx, usage))
        elif reserved.prepaid:
            await self.ledger.release(tx, reserved.id)

    async def _apply_judgement(self, tx: Tx, pair: MatchPair, judgement: Judgement) -> None:
        """Merge or dismiss the pair, or leave it open, by the current settings, and store the judgement."""
        outcome = judgement.outcome
        if outcome == JudgementOutcome.LEFT_OPEN:
            outcome = decide_outcome(judgement.choice, judgement.confidence or 0.0, pair, await load_judge_settings(tx))
        decide = {
            JudgementOutcome.MERGED: self.decisions.merge_pair,
            JudgementOutcome.DISMISSED: self.decisions.dismiss_pair,
        }.get(outcome)
        if decide is not None:
            try:
                async with tx.savepoint():
                    await decide(tx, pair.id, DecidedBy.JUDGE, judgement.note)
            except Conflict as refusal:
                outcome, judgement = (
                    JudgementOutcome.LEFT_OPEN,
                    replace(judgement, note=sanitise_model_text(str(refusal))),
                )
        decided = await tx[PairStore].get(pair.id, lock=True)
        if decided is not None:
            judgement = replace(judgement, outcome=outcome, judged_at=tx.now)
            await tx[PairStore].save(with_changes(decided, tx.now, judgement=judgement))

    async def _postpone(
        self,
        attempt: _Attempt,
        prepared: _PreparedRequest,
        failure: ModelAccessRefused | ModelUnavailable | TimeoutError,
    ) -> None:
        """Queue a job that repeats the request later; after too many failures, finish the job without another one."""
        attempt.failures += 1
        attempt.postponed = [*(id for id in attempt.postponed if id != prepared.pair.id), prepared.pair.id][
            -_MAX_POSTPONED:
        ]
        wait = compute_judging_delay(attempt.failures)
        reason = str(failure) or "no response"
        _LOG.info("model request about a pair postponed", extra={"pair": prepared.pair.id, "reason": reason})
        async with self.uow.begin(attempt.job.tenant, attempt.job.create_context("judge")) as tx:
            if not isinstance(failure, TimeoutError):  # the cost is unknown, so the full amount stays reserved
                await _record_actual_cost(tx, attempt, prepared.use, failure.usage)
                await self._settle(tx, prepared.use, failure.usage)
            if wait is None:
                await tx[JobStore].finish(attempt.job)
            else:
                after = failure.retry_after if isinstance(failure, ModelUnavailable) else None
                await _queue_next_job(tx, attempt, WAITING_REASON, tx.now + max(wait, min(after or wait, _DAY)))


async def _queue_next_job(tx: Tx, attempt: _Attempt, reason: str, run_at: datetime | None) -> None:
    """Finish the job and queue a new one that continues with the state of the attempt.

    Args:
        tx: The transaction.
        attempt: The attempt.
        reason: The reason of the new job; nothing is queued if a job with this reason is already open.
        run_at: The earliest start, or None for now.
    """
    await tx[JobStore].finish(attempt.job)
    await tx[JobStore].add(create_judging_job(attempt.job.tenant, reason, attempt.failures, attempt.postponed, run_at))


def _build_judgement(prepared: _PreparedRequest, answer: ModelOutput) -> Judgement:
    """Return the judgement for an answer; an invalid answer gets the outcome `failed` and no reasons."""
    try:
        parsed = parse_answer(answer.value)
    except ValidationError as fault:
        return _create_judgement(
            prepared,
            answer.usage,
            JudgementOutcome.FAILED,
            note=f"The model's answer has an invalid structure: {fault}.",
        )
    judgement = _create_judgement(
        prepared, answer.usage, JudgementOutcome.LEFT_OPEN, choice=parsed.choice, confidence=parsed.confidence
    )
    subject, candidate = (build_visible_texts(prepared.items[id]) for id in (prepared.pair.left, prepared.pair.right))
    if fault_text := find_fault(parsed, subject, candidate):
        return replace(judgement, outcome=JudgementOutcome.FAILED, note=fault_text)
    return replace(judgement, reasons=parsed.reasons, note=parsed.note or None)


def _create_judgement(
    prepared: _PreparedRequest, usage: ModelUsage | None, outcome: JudgementOutcome, **fields: Any
) -> Judgement:
    """Return a new judgement of a pair with the given outcome and further fields."""
    model = usage.model if usage else prepared.use.model
    return Judgement(new_id("jud"), model, outcome, prepared.use.created_at, **fields)


async def _record_actual_cost(tx: Tx, attempt: _Attempt, reserved: ModelUse, usage: ModelUsage | None) -> None:
    """Replace the reserved cost of a request by its actual cost; without usage, delete the reserved cost."""
    if not reserved.prepaid:
        attempt.spent_micros += (usage.cost_micros if usage else 0) - reserved.cost_micros
    await replace_reserved_use(tx, reserved, usage)
