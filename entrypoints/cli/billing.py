"""Commands for billing (docs/billing.md)."""

from typing import Any

from domain.billing.ports import BillingRegistry, Payments
from domain.billing.usecases.accounts import BillingService
from domain.billing.usecases.purchases import PurchaseService
from domain.kernel.errors import DomainError
from domain.kernel.ids import new_id
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
        tenants, failed = set[Tenant](), dict[str, str]()
        context = AuditContext(OPERATOR, "billing.reconcile")
        while rest := set(await dependencies[BillingRegistry].list_accounts(began)) - tenants:
            for tenant in rest:
                try:
                    parts = await service.synchronise(tenant, context, all_invoices=True)
                except DomainError as error:
                    failed[tenant.org] = str(error)
                else:
                    if parts:
                        differing[tenant.org] = list(parts)
            tenants |= rest
    lines = [f"{org}  {', '.join(parts)}" for org, parts in differing.items()]
    lines += [f"{org}  not compared: {error}" for org, error in failed.items()]
    summary = f"Compared {len(tenants) - len(failed):,} accounts; {len(differing):,} differed, {len(failed):,} failed."
    options.print_result({"accounts": len(tenants), "differing": differing, "failed": failed}, *lines, summary)
    return 1 if failed else 0


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


def _require_payments(dependencies: Dependencies) -> Payments:
    """Return the payment provider. Raises CommandError if none is configured."""
    payments = dependencies.find_optional(Payments)
    if payments is None:
        raise CommandError("No payment provider is configured. Set JOINERY_STRIPE_SECRET_KEY.")
    return payments
