"""Prices of plans in several currencies, and announced prices."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from domain.billing.model import PlanPrice, PricedPlan, QuotaExcess
from domain.credits.model import require_notice
from domain.kernel.errors import CurrencyUnsupported, Unprocessable
from domain.orgs.model import Plan
from domain.usage.meters import GAUGES


def list_history(plan: Plan, prices: Sequence[PlanPrice], currency: str) -> Sequence[PlanPrice]:
    """Return all prices of the plan in the currency, oldest first, with the one that the plan itself states."""
    own = PlanPrice(plan.code, plan.currency, plan.monthly, {meter: one.amount for meter, one in plan.meters.items()})
    return [one for one in (own, *prices) if (one.plan, one.currency) == (plan.code, currency)]


def price_plans(
    plans: Sequence[Plan], prices: Sequence[PlanPrice], currency: str | None, now: datetime
) -> Sequence[PricedPlan]:
    """Return the plans that are sold in the currency, with the prices that apply now.

    Args:
        plans: All plans. The price that a plan states itself applies in its currency until another price is effective.
        prices: All stored prices, oldest first.
        currency: The currency; None for each plan's own currency.
        now: The current time.
    """
    priced = []
    for plan in plans:
        selected = currency or plan.currency
        history = list_history(plan, prices, selected)
        current = [one for one in history if one.effective_at is None or one.effective_at <= now]
        if current:
            meters = {
                meter: replace(one, amount=current[-1].amounts.get(meter, 0)) for meter, one in plan.meters.items()
            }
            priced.append(
                PricedPlan(
                    plan.code,
                    plan.name,
                    selected,
                    current[-1].monthly,
                    meters,
                    next((one for one in history if one not in current), None),
                )
            )
    return priced


def select_plan(
    plans: Sequence[Plan], prices: Sequence[PlanPrice], code: str, currency: str | None, now: datetime
) -> PricedPlan:
    """Return a plan that can be subscribed to, with its price.

    Raises:
        Unprocessable: There is no such plan, or it is free of charge.
        CurrencyUnsupported: The plan is not sold in the currency.
    """
    if code not in {plan.code for plan in plans}:
        raise Unprocessable.for_field(
            "plan", "invalid_value", f"The plan {code} does not exist. GET /v1/plans lists them."
        )
    found = next((one for one in price_plans(plans, prices, currency, now) if one.code == code), None)
    if found is None:
        raise CurrencyUnsupported.for_field(
            "currency", "invalid_value", f"The plan {code} is not sold in {currency}. GET /v1/billing lists the prices."
        )
    if not found.monthly:
        raise Unprocessable.for_field(
            "plan", "invalid_value", "This plan is free of charge. Cancel the subscription to return to it."
        )
    return found


def check_notice(plans: Sequence[Plan], prices: Sequence[PlanPrice], price: PlanPrice, now: datetime) -> None:
    """Raise PriceNoticeTooShort if the new price is higher than the one before it and applies in less than 30 days."""
    effective_at = price.effective_at or now
    before = next(
        (one for one in price_plans(plans, prices, price.currency, effective_at) if one.code == price.plan), None
    )
    is_higher = before is not None and (
        price.monthly > before.monthly
        or any(price.amounts.get(meter, 0) > allowance.amount for meter, allowance in before.meters.items())
    )
    if is_higher:
        require_notice(effective_at, now)


def find_excesses(used: Mapping[str, int], plan: PricedPlan) -> Sequence[QuotaExcess]:
    """Return the meters of which the organisation uses more than the plan includes; `used` is the amount by meter."""
    return [
        QuotaExcess(meter, amount, plan.meters[meter].included)
        for meter, amount in used.items()
        if meter in plan.meters and amount > plan.meters[meter].included
    ]


def refuse_excess(used: Mapping[str, int], plan: PricedPlan) -> None:
    """Raise Unprocessable if the organisation keeps more than the plan includes, and the plan does not charge for that.

    Monthly meters start at zero with the next month, so only gauges count.
    """
    for one in find_excesses(used, plan):
        if one.meter in GAUGES and not plan.meters[one.meter].amount:
            raise Unprocessable.for_field(
                "plan",
                "invalid_value",
                f"The plan {plan.name} includes {one.included:,} {one.meter}, and {one.used:,} are in use. "
                f"Remove {one.used - one.included:,} first.",
            )
