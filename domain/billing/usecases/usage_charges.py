"""Charges for usage beyond the quotas of a plan: each month is closed once, and then invoiced."""

import logging
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta

from domain.billing.model import ACCOUNT_ID, CREDIT_CURRENCY, BillingAccount, UsageCharge
from domain.billing.overage import compute_charges, merge_allowances
from domain.billing.ports import BillingRegistry, BillingStore, NewInvoice
from domain.billing.prices import price_plans
from domain.billing.usecases.accounts import BillingService, load_account, load_prices
from domain.billing.usecases.synchronisation import BILLING_LANE
from domain.jobs.model import ClaimedJob, NewJob
from domain.jobs.ports import JobStore
from domain.jobs.usecases.ticks import log_errors
from domain.kernel.tenancy import Actor, AuditContext
from domain.usage.meters import find_month_start, find_next_month
from ports.unit_of_work import Tx

CHARGING_JOB = "billing.charge_usage"
CLOSING_DELAY = timedelta(days=1)
"""Time after the end of a month until the month is closed, within which its last usage is counted."""
_CONTEXT = AuditContext(Actor("service", "scheduler"), "billing.close_month")
_LOG = logging.getLogger("joinery.billing")


@dataclass(frozen=True, slots=True)
class MonthCloser:
    """Closes months in a scheduled task, and creates their invoices in jobs."""

    registry: BillingRegistry
    billing: BillingService

    async def close_months(self) -> None:
        """Close all ended months in which organisations had a plan by subscription."""
        if self.billing.payments is None:
            return
        month = find_month_start((self.billing.clock.now() - CLOSING_DELAY).date())
        for tenant, unclosed in await self.registry.list_unclosed(month):
            with log_errors(_LOG, f"month {unclosed:%Y-%m} not closed", tenant):
                async with self.billing.uow.begin(tenant, _CONTEXT) as tx:
                    await self.close_month(tx, unclosed)

    async def close_month(self, tx: Tx, month: date) -> UsageCharge:
        """Store the charge for a month, and queue the job that creates its invoice; return the charge.

        The plan of the month that includes most determines quota and price of each meter, at the prices of the start of
        the month. Only days with a plan by subscription are charged, and nothing if no recorded plan still exists.
        """
        await tx.store(BillingAccount).get(ACCOUNT_ID, lock=True)  # concurrent calls wait for each other
        id = f"{month:%Y-%m}"
        if (closed := await tx.store(UsageCharge).get(id)) is not None:
            return closed
        account, periods = await load_account(tx), await tx[BillingStore].list_plans(month)
        end = find_next_month(month)
        prices, codes = await load_prices(tx), {code for code, _, _ in periods}
        # a plan that was not sold at the start of the month has its first price
        by_code = {
            plan.code: plan
            for day in (end - timedelta(days=1), month)
            for plan in price_plans(*prices, account.currency, datetime.combine(day, time(), UTC))
        }
        sold = [plan for plan in by_code.values() if plan.code in codes]
        currency = sold[0].currency if sold else account.currency or CREDIT_CURRENCY
        priced = merge_allowances([plan.meters for plan in sold if plan.currency == currency])
        # a plan that is not sold in the currency, such as one that the operator had set, includes its quotas nevertheless
        unsold = [
            {meter: replace(priced.get(meter, one), included=one.included) for meter, one in plan.meters.items()}
            for plan in prices[0]
            if sold and plan.code in codes and plan.code not in by_code
        ]
        allowances = merge_allowances([priced, *unsold])
        series = await self.billing.usage.get_series(tx, None, month, end - timedelta(days=1))
        charged = {
            meter: [one for one in days if any(began <= one.day <= (ended or end) for _, began, ended in periods)]
            for meter, days in series.days.items()
        }
        lines = tuple(compute_charges(month, charged, allowances))
        charge = UsageCharge(
            id=id, currency=currency, total=sum(line.amount for line in lines), lines=lines, created_at=tx.now
        )
        await tx.store(UsageCharge).add(charge)
        if lines:
            await tx[JobStore].add(NewJob(CHARGING_JOB, BILLING_LANE, tx.tenant, {"month": id}, key=f"usage:{id}"))
        return charge

    async def create_usage_invoice(self, job: ClaimedJob) -> None:
        """Create the invoice of a closed month, whose cause is the month; a repeated call creates no other one."""
        context = job.create_context("billing")
        async with self.billing.uow.begin_reading(job.tenant) as tx:
            charge = await tx.store(UsageCharge).get(str(job.args["month"]))
        if charge is not None:
            new = NewInvoice(f"usage-{charge.id}", charge.currency, charge.lines, is_charged=True)
            await self.billing.create_invoice(job.tenant, context, new)
        async with self.billing.uow.begin(job.tenant, context) as tx:
            await tx[JobStore].finish(job)
