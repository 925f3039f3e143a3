"""Charges for usage beyond what a plan includes (docs/billing.md#usage)."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime

from domain.billing.model import InvoiceLine, Period
from domain.orgs.model import MeterAllowance
from domain.usage.meters import GAUGES, METERS, DayUsage, find_next_month


def merge_allowances(plans: Sequence[Mapping[str, MeterAllowance]]) -> Mapping[str, MeterAllowance]:
    """Return, for each meter, the allowance that includes the most, among those of the plans of a month.

    A meter that one of the plans does not limit has no allowance.
    """
    unlimited = {meter for meter in METERS if any(meter not in plan for plan in plans)}
    return {
        meter: max((plan[meter] for plan in plans), key=lambda one: (one.included, -one.amount))
        for meter in METERS
        if plans and meter not in unlimited
    }


def compute_charges(
    month: date, days: Mapping[str, Sequence[DayUsage]], allowances: Mapping[str, MeterAllowance]
) -> Sequence[InvoiceLine]:
    """Return the lines that charge the usage of a month beyond the allowances; amounts of zero have no line.

    A monthly meter is charged for each begun `per` units beyond the included quantity of the month. For a gauge, the
    price of a unit is that of a whole month, and each day on which the unit was in use costs its part of the price.

    Args:
        month: The first day of the month.
        days: The usage of each day of the month by meter, as in `GET /v1/usage/series`.
        allowances: The allowances by meter.
    """
    lines = []
    end = find_next_month(month)
    period = Period(_at_midnight(month), _at_midnight(end))
    for meter, allowance in allowances.items():
        used = [one.amount for one in days.get(meter, ())]
        if meter in GAUGES:
            quantity = sum(_count_units(amount, allowance) for amount in used)
            amount = _divide(quantity * allowance.amount, (end - month).days)
            unit = "days of use" if allowance.per == 1 else f"days of use of {allowance.per:,}"
            detail = f"{quantity:,} {unit} beyond {allowance.included:,} included"
        else:
            quantity = max(0, sum(used) - allowance.included)
            amount = _count_units(sum(used), allowance) * allowance.amount
            active_days = sum(amount > 0 for amount in used)
            detail = (
                f"{sum(used):,} used on {active_days} days, {allowance.included:,} included, "
                f"{quantity:,} charged per {allowance.per:,}"
            )
        if amount:
            lines.append(InvoiceLine(f"{meter} {month:%Y-%m}: {detail}", amount, period, quantity, meter))
    return lines


def _count_units(used: int, allowance: MeterAllowance) -> int:
    """Return the number of begun `per` units beyond the included quantity."""
    return max(0, -(-(used - allowance.included) // allowance.per))


def _divide(amount: int, parts: int) -> int:
    """Return the quotient, rounded half up."""
    return (2 * amount + parts) // (2 * parts)


def _at_midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)
