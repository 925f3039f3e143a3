"""Synchronisation of billing accounts after notifications of the payment provider, once a day, and after a grace period."""

import logging
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from domain.billing.ports import BillingRegistry
from domain.billing.usecases.accounts import BillingService, load_account
from domain.jobs.model import ClaimedJob, NewJob
from domain.jobs.ports import JobStore
from domain.jobs.usecases.ticks import log_errors
from domain.kernel.tenancy import Actor, AuditContext

SYNCHRONISATION_JOB: Final = "billing.synchronise"
RECONCILIATION_JOB: Final = "billing.reconcile"
BILLING_LANE: Final = "billing"
RECONCILIATION_INTERVAL = timedelta(hours=20)
_LOG = logging.getLogger("joinery.billing")


@dataclass(frozen=True, slots=True)
class AccountSynchroniser:
    """Receiver of notifications, handler of the jobs that synchronise accounts, and the tasks that queue these jobs."""

    registry: BillingRegistry
    billing: BillingService

    async def receive(self, body: bytes, signature: str) -> None:
        """Queue the synchronisation of the account that a notification is about.

        The notification states only which customer has changed. Order, repetition and loss of notifications therefore
        do not matter. Notifications about other customers are ignored.

        Raises InvalidSignature if the notification is not from the payment provider.
        """
        if self.billing.payments is None:
            return
        event = self.billing.payments.parse_event(body, signature)
        tenant = await self.registry.find_tenant(event.customer) if event.customer is not None else None
        if tenant is None:
            return
        context = AuditContext(Actor("service", "payments"), "billing.notify")
        async with self.billing.uow.begin(tenant, context) as tx:
            reads = (await load_account(tx)).reads
            await tx[JobStore].add(
                NewJob(SYNCHRONISATION_JOB, BILLING_LANE, tenant, {"after": reads}, key=f"billing:{event.id}")
            )

    async def synchronise(self, job: ClaimedJob) -> None:
        """Synchronise an account, unless a later request to the provider than the notification is stored already."""
        async with self.billing.uow.begin_reading(job.tenant) as tx:
            account = await load_account(tx)
        if account.applied_read <= int(job.args["after"]):
            await self.billing.synchronise(job.tenant, job.create_context("payments"))
        await self._finish(job)

    async def reconcile(self, job: ClaimedJob) -> None:
        """Compare an account and all its invoices with the provider, and apply announced prices."""
        context = job.create_context("payments")
        differing = await self.billing.synchronise(job.tenant, context, all_invoices=True)
        if differing:
            _LOG.warning("billing account differed", extra={"org": job.tenant.org, "parts": list(differing)})
        await self.billing.apply_price(job.tenant, context)
        await self._finish(job)

    async def queue_reconciliations(self) -> None:
        """Queue the reconciliation of the accounts that are due."""
        if self.billing.payments is None:
            return
        context = AuditContext(Actor("service", "scheduler"), RECONCILIATION_JOB)
        for tenant in await self.registry.list_accounts(self.billing.clock.now() - RECONCILIATION_INTERVAL):
            with log_errors(_LOG, "reconciliation not queued", tenant):
                async with self.billing.uow.begin(tenant, context) as tx:
                    await tx[JobStore].add(NewJob(RECONCILIATION_JOB, BILLING_LANE, tenant, key=RECONCILIATION_JOB))

    async def end_grace_periods(self) -> None:
        """Withdraw the plans of subscriptions whose grace period has ended."""
        context = AuditContext(Actor("service", "scheduler"), "billing.end_grace")
        for tenant in await self.registry.list_ended_grace(self.billing.clock.now()):
            with log_errors(_LOG, "grace period not ended", tenant):
                await self.billing.end_grace(tenant, context)

    async def _finish(self, job: ClaimedJob) -> None:
        async with self.billing.uow.begin(job.tenant, job.create_context("payments")) as tx:
            await tx[JobStore].finish(job)
