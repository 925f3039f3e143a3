"""Commands for the prices of plans (docs/billing.md#for-operators)."""

from collections.abc import Collection
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Annotated, Any

from cyclopts import Parameter

from domain.billing.model import PlanPrice
from domain.billing.ports import PriceRegistry
from domain.billing.prices import check_notice, list_history
from domain.kernel.errors import DomainError
from domain.kernel.money import EXPONENTS
from domain.orgs.ports import OrgRegistry
from entrypoints.cli.store import DEFAULT_OPTIONS, CommandOptions
from entrypoints.errors import CommandError
from ports.clock import Clock


async def list_prices(*, options: CommandOptions = DEFAULT_OPTIONS) -> int:
    """List the prices of plans that operators have set."""
    async with options.open_dependencies() as dependencies:
        prices = await dependencies[PriceRegistry].list_prices()
    lines = [
        f"{one.plan:<12} {one.currency}  {_format(one.monthly, one.currency):>16}  {one.effective_at:%Y-%m-%d}"
        for one in prices
    ]
    return options.print_result(
        {"prices": [_build_price_json(one) for one in prices]}, *lines or ["No prices are set."]
    )


async def set_price(
    *,
    plan: str,
    currency: Annotated[str, Parameter(choices=sorted(EXPONENTS))],
    monthly: int,
    amounts: str = "",
    since: Annotated[date | None, Parameter("--from")] = None,
    options: CommandOptions = DEFAULT_OPTIONS,
) -> int:
    """Set the price of a plan in a currency; a higher price must be announced 30 days in advance.

    Args:
        plan: Code of the plan.
        currency: Currency of the price.
        monthly: Price per month in minor units.
        amounts: Prices of further use in minor units, such as records=9,sources=800; other meters keep theirs.
        since: Day (UTC) from which the price applies (default: now).
    """
    async with options.open_dependencies() as dependencies:
        registry, now = dependencies[PriceRegistry], dependencies[Clock].now()
        found = await dependencies[OrgRegistry].find_plan(plan)
        if found is None:
            raise CommandError(f"There is no plan {plan!r}. Change --plan.")
        if monthly < 0:
            raise CommandError("The price must not be negative. Change --monthly.")
        prices = await registry.list_prices()
        effective_at = datetime.combine(since, time(), UTC) if since else now
        earlier = [one for one in list_history(found, prices, currency) if (one.effective_at or now) <= effective_at]
        stated = _read_amounts(amounts, found.meters)
        missing = [meter for meter, one in found.meters.items() if one.amount and meter not in stated]
        if missing and not earlier:
            raise CommandError(f"State the prices of {', '.join(missing)} in {currency}. Change --amounts.")
        known = earlier[-1].amounts if earlier else dict.fromkeys(found.meters, 0)
        price = PlanPrice(plan, currency, monthly, {**known, **stated}, effective_at)
        try:
            check_notice([found], prices, price, now)
        except DomainError as error:
            raise CommandError(f"{error} Change --from.") from error
        await registry.add_price(price)
    result = _build_price_json(price)
    return options.print_result(
        result, f"{found.name} costs {_format(monthly, currency)} a month from {effective_at:%Y-%m-%d}."
    )


def _format(amount: int, currency: str) -> str:
    """Format an amount in minor units, such as `89.00 EUR`."""
    return f"{Decimal(amount).scaleb(-EXPONENTS[currency])} {currency.upper()}"


def _read_amounts(text: str, known: Collection[str]) -> dict[str, int]:
    """Return the amounts by meter. Raises CommandError."""
    found = {}
    for part in filter(None, text.split(",")):
        meter, _, amount = part.strip().partition("=")
        if meter not in known or not amount.isdecimal():
            raise CommandError(f"{part!r} is not a meter with a price. Use --amounts {next(iter(known), 'records')}=9.")
        found[meter] = int(amount)
    return found


def _build_price_json(price: PlanPrice) -> dict[str, Any]:
    return {
        "plan": price.plan,
        "currency": price.currency,
        "monthly": price.monthly,
        "amounts": dict(price.amounts),
        "effective_at": price.effective_at.isoformat() if price.effective_at else None,
    }
