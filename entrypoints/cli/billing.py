"""Commands for billing (docs/billing.md)."""

from datetime import UTC, date, datetime, time
from typing import Annotated, Any

from cyclopts import Parameter

from domain.billing.model import PlanPrice
from domain.billing.ports import BillingRegistry, Payments, PriceRegistry
from domain.billing.prices import check_notice
from domain.billing.usecases.accounts import BillingService
from domain.billing.usecases.purchases import PurchaseService
from domain.kernel.errors import DomainError
from domain.kernel.ids import new_id
from domain.kernel.money import EXPONENTS
from domain.kernel.tenancy import AuditContext, Tenant
from domain.orgs.ports import OrgRegistry
from entrypoints.cli.store import DEFAULT_OPTIONS, CommandOptions, OrganisationOptions
from entrypoints.dependencies import Dependencies
from entrypoints.errors import CommandError
from entrypoints.provisioning import OPERATOR
from ports.clock import Clock


async def reconcile(*, options: CommandOptions = DEFAULT_OPTIONS) -> int:
    """Compare all accounts with the payment provider, store what differs, and list it."""
    async with options.open_dependencies() as dependencies:
        _require_payments(dependencies)
        service, differing, began = dependencies[BillingService], dict[str, Any](), dependencies[Clock].now()
        tenants, failed = set[Tenant](), list[str]()
        while rest := set(await dependencies[BillingRegistry].list_accounts(began)) - tenants:
            for tenant in rest:
                try:
                    parts = await service.synchronise(
                        tenant, AuditContext(OPERATOR, "billing.reconcile"), all_invoices=True
                    )
                except DomainError as error:
                    failed.append(f"{tenant.org}: {error}")
                else:
                    if parts:
                        differing[tenant.org] = list(parts)
            tenants |= rest
    if failed:
        raise CommandError("\n".join(failed))
    lines = [f"{org}  {', '.join(parts)}" for org, parts in differing.items()]
    summary = f"Compared {len(tenants):,} accounts; {len(differing):,} differed."
    return options.print_result({"accounts": len(tenants), "differing": differing}, *lines, summary)


async def list_arrears(*, options: CommandOptions = DEFAULT_OPTIONS) -> int:
    """List the organisations with failed payments, by the end of the grace period."""
    async with options.open_dependencies() as dependencies:
        accounts = await dependencies[BillingRegistry].list_arrears()
        names = await dependencies[OrgRegistry].find_names([tenant.org for tenant, _ in accounts])
    rows = [
        {
            "organisation": tenant.org,
            "name": names.get(tenant.org, ""),
            "plan": account.subscription.plan if account.subscription else None,
            "grace_ends_at": account.grace_ends_at.isoformat() if account.grace_ends_at else None,
        }
        for tenant, account in accounts
    ]
    lines = [f"{row['organisation']}  {row['plan']}  {row['grace_ends_at']}  {row['name']}" for row in rows]
    return options.print_result({"accounts": rows}, *lines or ["No accounts are in arrears."])


async def refund(*, purchase: str, amount: int | None = None, options: OrganisationOptions) -> int:
    """Refund a purchase of credit, and remove the credit that is not spent.

    Args:
        purchase: ID of the purchase.
        amount: Amount in cents (default: all that is not refunded).
    """
    async with options.open_organisation() as (dependencies, organisation):
        _require_payments(dependencies)
        service = PurchaseService(dependencies[BillingService])
        context = AuditContext(OPERATOR, "billing.refund")
        try:
            refunded = await service.refund(Tenant(organisation.id, True), context, purchase, amount, new_id("req"))
        except DomainError as error:
            raise CommandError(str(error)) from error
    result = {"purchase": refunded.id, "refunded": refunded.refunded, "total": refunded.total}
    return options.print_result(result, f"{refunded.refunded} of {refunded.total} cents are refunded.")


async def list_prices(*, options: CommandOptions = DEFAULT_OPTIONS) -> int:
    """List the prices of plans that operators have set."""
    async with options.open_dependencies() as dependencies:
        prices = await dependencies[PriceRegistry].list_prices()
    lines = [f"{one.plan:<12} {one.currency}  {one.monthly:>9}  {one.effective_at:%Y-%m-%d}" for one in prices]
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
        earlier = [one for one in prices if (one.plan, one.currency) == (plan, currency)]
        known = earlier[-1].amounts if earlier else {meter: one.amount for meter, one in found.meters.items()}
        effective_at = datetime.combine(since, time(), UTC) if since else now
        price = PlanPrice(plan, currency, monthly, {**known, **_read_amounts(amounts, known)}, effective_at)
        try:
            check_notice([found], prices, price, now)
        except DomainError as error:
            raise CommandError(f"{error} Change --from.") from error
        await registry.add_price(price)
    result = _build_price_json(price)
    return options.print_result(
        result, f"{found.name} costs {monthly} {currency} a month from {effective_at:%Y-%m-%d}."
    )


def _read_amounts(text: str, known: Any) -> dict[str, int]:
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


def _require_payments(dependencies: Dependencies) -> Payments:
    """Return the payment provider. Raises CommandError if none is configured."""
    payments = dependencies.find_optional(Payments)
    if payments is None:
        raise CommandError("No payment provider is configured. Set JOINERY_STRIPE_SECRET_KEY.")
    return payments
