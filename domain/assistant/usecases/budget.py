"""Cost of the assistant's requests to models: reserved before a request, and corrected afterwards.

If the process ends in between, the recorded cost is too high, but never too low.
"""

from dataclasses import dataclass, replace
from datetime import timedelta

from domain.assistant.model import TASK, AssistantPreferences, AssistantSettings, SpendEntry
from domain.assistant.ports import SpendStore
from domain.credits.ports import CreditStore
from domain.credits.usecases.ledger import CreditLedger
from domain.kernel.errors import AiBudgetReached, DomainError
from domain.orgs.quota import build_quota_error, count_seconds_to_next_month
from domain.usage.meters import AI_TOKENS, find_month_start
from domain.usage.model import ModelUse
from domain.usage.model_budget import create_model_use, find_start_of_day, replace_reserved_use
from domain.usage.usecases import quota
from ports.language_models import ModelUsage
from ports.unit_of_work import Tx

_ALLOWANCE_SPENT = (
    "Today's allowance of the assistant is spent. Wait until tomorrow (UTC), or let an administrator raise the allowance or "
    "permit spending credit."
)
_PERSONAL_BUDGET_SPENT = (
    "Your budget for the assistant is spent. Wait for the next month (UTC), or raise the budget in your preferences or the "
    "organisation's settings."
)
_QUOTA_SPENT = (
    "The language model tokens that the plan includes per month are used up. Wait for the next month (UTC), or let an "
    "administrator permit spending credit."
)


@dataclass(frozen=True, slots=True)
class AssistantBudget:
    """Use cases of the assistant's spend."""

    ledger: CreditLedger

    async def require_budget(
        self, tx: Tx, person: str, settings: AssistantSettings, preferences: AssistantPreferences
    ) -> None:
        """Raise the errors of `reserve` if nothing can be spent."""
        if not await self._is_within_allowance(tx, person, settings, preferences, 1):
            available, _ = await tx[CreditStore].get_totals()
            if not (settings.spend_credit and available):
                raise await _create_refusal(tx)

    async def reserve(
        self,
        tx: Tx,
        person: str,
        settings: AssistantSettings,
        preferences: AssistantPreferences,
        usage: ModelUsage,
        conversation: str,
    ) -> ModelUse:
        """Reserve the cost of a request: from the allowance of the day, else from credit; return its use.

        Raises:
            AiBudgetReached: The allowance or a personal budget does not suffice.
            QuotaExceeded: The plan's tokens of the month are used up, and no credit may be spent.
        """
        use = create_model_use(tx, TASK, conversation, usage)
        await tx[SpendStore].lock()
        if not await self._is_within_allowance(tx, person, settings, preferences, use.cost_micros):
            charge = await self.ledger.compute_charge(tx, use)
            if not (settings.spend_credit and await self.ledger.reserve(tx, use.id, charge)):
                raise await _create_refusal(tx)
            use = replace(use, prepaid=True)
        await tx.store(ModelUse).add(use)
        await tx[SpendStore].add(_create_entry(use, person, use.cost_micros))
        return use

    async def _is_within_allowance(
        self, tx: Tx, person: str, settings: AssistantSettings, preferences: AssistantPreferences, micros: int
    ) -> bool:
        """Return whether the allowance of the day and the plan's quota cover a cost. Raises AiBudgetReached for personal budgets."""
        today = tx.now.date()
        entries = await tx[SpendStore].list_entries(find_month_start(today))
        personal = sum(entry.micros for entry in entries if entry.person == person) + micros
        budgets = (settings.per_person_budget_micros, preferences.personal_budget_micros)
        if any(budget is not None and personal > budget for budget in budgets):
            raise AiBudgetReached(_PERSONAL_BUDGET_SPENT, retry_after=count_seconds_to_next_month(tx.now))
        spent = sum(entry.allowance_micros for entry in entries if entry.day == today)
        return spent + micros <= settings.daily_allowance_micros and not await quota.is_spent(tx, AI_TOKENS)

    async def settle(self, tx: Tx, person: str, use: ModelUse, usage: ModelUsage | None) -> None:
        """Replace the reserved cost of a request by its actual cost; without usage, the request was not sent."""
        await tx[SpendStore].lock()
        await replace_reserved_use(tx, use, usage)
        cost = usage.cost_micros if usage else 0
        if use.prepaid and usage is not None:
            cost = await self.ledger.settle(tx, use.id, await self.ledger.compute_charge(tx, usage))
        elif use.prepaid:
            await self.ledger.release(tx, use.id)
        await tx[SpendStore].add(_create_entry(use, person, cost - use.cost_micros))


def _create_entry(use: ModelUse, person: str, micros: int) -> SpendEntry:
    return SpendEntry(use.created_at.date(), person, *((0, micros) if use.prepaid else (micros, 0)))


async def _create_refusal(tx: Tx) -> DomainError:
    """Return the error for a cost that neither the allowance of the day and the plan's quota nor credit cover."""
    if await quota.is_spent(tx, AI_TOKENS):
        return build_quota_error(AI_TOKENS, _QUOTA_SPENT, tx.now)
    tomorrow = find_start_of_day(tx.now) + timedelta(days=1)
    return AiBudgetReached(_ALLOWANCE_SPENT, retry_after=int((tomorrow - tx.now).total_seconds()) + 1)
