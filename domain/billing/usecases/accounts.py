"""Use cases of billing accounts: subscription, card, details, and synchronisation with the payment provider.

The provider's state is authoritative. Each change is made at the provider first. Then the provider's state is read and
stored, also after each notification and once a day. A process may therefore die between any two steps.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from domain.audit.ports import AuditLog
from domain.billing.model import (
    ACCOUNT_ID,
    AUDITED_ACCOUNT_FIELDS,
    FREE_PLAN,
    MONTH,
    BillingAccount,
    BillingDetailsChange,
    ChangePreview,
    Confirmation,
    ConfirmationKind,
    Invoice,
    Money,
    PlanPrice,
    PlanSubscription,
    PricedPlan,
    ProviderAccount,
    SubscriptionStatus,
    find_grace_end,
    find_proration_time,
    is_entitled,
)
from domain.billing.ports import BillingStore, NewInvoice, Payments
from domain.billing.prices import find_excesses, list_history, price_plans, refuse_excess, select_plan
from domain.billing.tax_ids import normalise_tax_id
from domain.kernel.errors import Conflict, CurrencyUnsupported, DomainError, FeatureUnavailable, Unavailable
from domain.kernel.ids import new_id
from domain.kernel.tenancy import AuditContext, Tenant
from domain.orgs.model import Organisation, Plan
from domain.orgs.ports import OrgStore
from domain.usage.meters import find_month_start
from domain.usage.usecases.service import UsageService
from ports.clock import Clock
from ports.unit_of_work import Tx, UnitOfWork

CHANGE_LEASE: Final = timedelta(minutes=2)
"""Time after which a change of an account that did not end no longer prevents others."""
CHANGE_TIMEOUT: Final = timedelta(seconds=90)
"""Time after which a change is cancelled, so that it ends before its lease."""
_MANAGED_BY_OPERATOR: Final = "The operator manages this subscription. Ask the operator to change it."
_LOG = logging.getLogger("joinery.billing")

ApplyPurchases = Callable[[Tx, Sequence[Invoice]], Awaitable[Sequence[str]]]
"""Function that updates purchases of credit from the invoices; returns the IDs of those that changed."""


@dataclass(frozen=True, slots=True)
class AccountView:
    """Billing account with what an organisation sees beside it.

    Attributes:
        enabled: Whether the service sells plans, in this mode.
        is_live: Whether real money is moved.
        plans: The plans with their prices in the currency of the account.
        overdue: The oldest invoice whose payment has failed, or None.
        credit_balance: The available credit in micro-US-dollars.
    """

    enabled: bool
    is_live: bool
    organisation: Organisation
    account: BillingAccount
    plans: Sequence[PricedPlan]
    overdue: Invoice | None
    credit_balance: int


@dataclass(frozen=True, slots=True)
class SubscriptionRequest:
    """Plan that an organisation selects."""

    plan: str
    currency: str | None = None
    promotion_code: str | None = None


@dataclass(frozen=True, slots=True)
class BillingService:
    """Use cases of billing accounts.

    Attributes:
        payments: The payment provider, or None if the service sells nothing.
        apply_purchases: Updates purchases of credit from their invoices.
    """

    uow: UnitOfWork
    clock: Clock
    payments: Payments | None
    usage: UsageService
    apply_purchases: ApplyPurchases

    def require_payments(self, tenant: Tenant) -> Payments:
        """Return the payment provider. Raises FeatureUnavailable if the service sells nothing in this mode."""
        if self.payments is None or not tenant.livemode:
            raise FeatureUnavailable(
                "Billing is not available in test mode. Use live mode."
                if self.payments is not None
                else "This service does not sell plans. The operator sets the plan of each organisation."
            )
        return self.payments

    async def get_view(self, tx: Tx, credit_balance: int) -> AccountView:
        """Return the billing account of the tenant; `credit_balance` is the available credit."""
        organisation = await tx[OrgStore].get_organisation()
        account = await load_account(tx)
        enabled = self.payments is not None and tx.tenant.livemode
        return AccountView(
            enabled=enabled,
            is_live=enabled and self.payments is not None and self.payments.is_live,
            organisation=organisation,
            account=account,
            plans=price_plans(*await load_prices(tx), account.currency, tx.now),
            overdue=await tx[BillingStore].find_overdue_invoice(),
            credit_balance=credit_balance,
        )

    async def load_request(
        self, tx: Tx, request: SubscriptionRequest
    ) -> tuple[BillingAccount, PricedPlan, Mapping[str, int]]:
        """Return the account, the requested plan in the account's currency, and the usage of the month by meter.

        Raises:
            Unprocessable: The plan does not exist or is free of charge.
            CurrencyUnsupported: The plan is not sold in the currency, or the account has another one.
        """
        account = await load_account(tx)
        if account.currency is not None and request.currency not in (None, account.currency):
            raise CurrencyUnsupported.for_field(
                "currency", "invalid_value", f"Your organisation is charged in {account.currency}. Omit the currency."
            )
        plan = select_plan(*await load_prices(tx), request.plan, request.currency or account.currency, tx.now)
        return account, plan, {one.meter: one.used for one in (await self.usage.get_month_usage(tx)).meters}

    async def preview(
        self, tenant: Tenant, context: AuditContext, request: SubscriptionRequest, *, is_dry_run: bool = False
    ) -> ChangePreview:
        """Return what a change of plan costs, as the provider computes it.

        In a dry run, no customer is created at the provider, so a first subscription is previewed without tax.

        Raises Unprocessable or CurrencyUnsupported as `load_request` does.
        """
        payments = self.require_payments(tenant)
        async with self.uow.begin_reading(tenant) as tx:
            account, plan, used = await self.load_request(tx, request)
        subscription, now, excesses = account.subscription, tx.now, find_excesses(used, plan)
        if is_dry_run and account.customer is None:
            next_at = now + timedelta(days=30)
            return ChangePreview(plan.code, plan.currency, [], plan.monthly, plan.monthly, next_at, now, excesses)
        preview_plan: Callable[[PricedPlan], Awaitable[ChangePreview]]
        if subscription is not None and not _is_incomplete(subscription):
            if subscription.interval != MONTH:
                raise Conflict(_MANAGED_BY_OPERATOR)
            prorated_from = find_proration_time(subscription, now) if plan.monthly > subscription.price else None
            preview_plan = partial(payments.preview_change, subscription, prorated_from=prorated_from)
        else:
            customer = (await self.open_account(tenant, context)).get_customer()
            preview_plan = partial(payments.preview_subscription, customer)
        preview = await preview_plan(plan)
        next_plan = await self._load_plan(tenant, plan, preview.next_at)
        if next_plan.monthly != plan.monthly:
            preview = replace(preview, next_amount=(await preview_plan(next_plan)).next_amount)
        return replace(preview, excesses=excesses)

    async def subscribe(self, tenant: Tenant, context: AuditContext, request: SubscriptionRequest, key: str) -> None:
        """Subscribe to a plan, or change the plan: to a more expensive one now, to a cheaper one at the end of the period.

        Args:
            tenant: The tenant.
            context: The request.
            request: The plan.
            key: Key of the request. A repeated request has no further effect.

        Raises:
            PaymentDeclined: The card was declined; nothing has changed.
            Conflict: An invoice is overdue, or the operator manages the subscription.
            Unprocessable: The plan does not exist, or includes less than the organisation keeps.
            CurrencyUnsupported: The plan is not sold in the currency, or the account has another one.
        """
        try:
            async with self.begin_change(tenant, context):
                await self._subscribe(tenant, request, key)
        except DomainError:
            with suppress(DomainError):  # the task repeats it
                await self.apply_price(tenant, context)
            raise
        await self.apply_price(tenant, context)

    async def _subscribe(self, tenant: Tenant, request: SubscriptionRequest, key: str) -> None:
        """Subscribe to a plan, or change the plan, during a change of the account."""
        payments = self.require_payments(tenant)
        async with self.uow.begin_reading(tenant) as tx:
            account, plan, used = await self.load_request(tx, request)
        subscription = account.subscription
        if subscription is None or _is_incomplete(subscription):
            if subscription is not None:
                await payments.cancel_now(subscription)
            # after a cancelled attempt, the request must create another subscription
            key = f"{key}:{subscription.id if subscription else ''}"
            await payments.subscribe(
                account.get_customer(), plan, request.promotion_code, key, charges_card=account.card is not None
            )
        elif subscription.plan == plan.code:  # undo a scheduled change or a cancellation
            if subscription.scheduled_change is not None:
                await payments.cancel_scheduled_change(subscription)
            if subscription.cancel_at_period_end:
                await payments.set_cancellation(subscription, at_period_end=False)
        elif account.grace_ends_at is not None:
            raise Conflict("An invoice is overdue. Pay it before you change the plan.")
        elif subscription.interval != MONTH:
            raise Conflict(_MANAGED_BY_OPERATOR)
        elif plan.monthly > subscription.price:
            prorated_from = find_proration_time(subscription, self.clock.now())
            if subscription.scheduled_change is None:  # after an interruption, a schedule would end the new plan
                await payments.cancel_scheduled_change(subscription)
            await payments.change_plan(subscription, plan, prorated_from, key)
        else:
            refuse_excess(used, plan)
            next_plan = await self._load_plan(tenant, plan, subscription.current_period_end)
            await payments.schedule_change(subscription, next_plan, key)

    async def _load_plan(self, tenant: Tenant, plan: PricedPlan, at: datetime) -> PricedPlan:
        """Return the plan with its price at a time."""
        async with self.uow.begin_reading(tenant) as tx:
            return select_plan(*await load_prices(tx), plan.code, plan.currency, at)

    async def cancel(self, tenant: Tenant, context: AuditContext) -> None:
        """Cancel the subscription at the end of the period; an incomplete one ends now. Raises Conflict without one."""
        payments = self.require_payments(tenant)
        async with self.begin_change(tenant, context) as account:
            subscription = _require_subscription(account)
            if _is_incomplete(subscription):
                await payments.cancel_now(subscription)
            elif not subscription.cancel_at_period_end:
                await payments.cancel_scheduled_change(subscription)
                await payments.set_cancellation(subscription, at_period_end=True)

    async def resume(self, tenant: Tenant, context: AuditContext) -> None:
        """Undo the cancellation of the subscription, if it is cancelled. Raises Conflict without one."""
        payments = self.require_payments(tenant)
        async with self.begin_change(tenant, context) as account:
            subscription = _require_subscription(account)
            if subscription.cancel_at_period_end:
                await payments.set_cancellation(subscription, at_period_end=False)
        await self.apply_price(tenant, context)

    async def cancel_scheduled_change(self, tenant: Tenant, context: AuditContext) -> None:
        """Keep the current plan instead of a scheduled one. Raises Conflict without a subscription."""
        payments = self.require_payments(tenant)
        async with self.begin_change(tenant, context) as account:
            subscription = _require_subscription(account)
            await payments.cancel_scheduled_change(subscription)
        await self.apply_price(tenant, context)  # an announced price was scheduled too

    async def apply_price(self, tenant: Tenant, context: AuditContext) -> None:
        """Schedule the price that applies from the subscription's next period on, if it differs.

        A price that is none of the plan's was negotiated, and stays.
        """
        if self.payments is None or await self._find_new_price(tenant) is None:
            return
        async with self.begin_change(tenant, context) as account:
            plan, subscription = await self._find_new_price(tenant), account.subscription
            if plan is not None and subscription is not None:
                key = f"price:{subscription.id}:{account.applied_read}"
                await self.payments.schedule_change(subscription, plan, key)

    async def _find_new_price(self, tenant: Tenant) -> PricedPlan | None:
        """Return the plan of the subscription's next period with its price; None if the price stays."""
        async with self.uow.begin_reading(tenant) as tx:
            subscription, (plans, prices) = (await load_account(tx)).subscription, await load_prices(tx)
        if (
            subscription is None
            or subscription.status is not SubscriptionStatus.ACTIVE
            or subscription.cancel_at_period_end
            or subscription.interval != MONTH
        ):
            return None
        code = subscription.scheduled_change.plan if subscription.scheduled_change else subscription.plan
        priced = price_plans(plans, prices, subscription.currency, subscription.current_period_end)
        plan = next((one for one in priced if one.code == code), None)
        listed = {
            one.monthly
            for current in plans
            if current.code == subscription.plan
            for one in list_history(current, prices, subscription.currency)
        }
        is_outdated = plan is not None and plan.monthly != subscription.next_price
        return plan if is_outdated and subscription.price in listed else None

    async def change_details(self, tenant: Tenant, context: AuditContext, change: BillingDetailsChange) -> None:
        """Change name, email address, address or tax ID on invoices.

        Raises:
            InvalidRequest: The tax ID is not valid.
            Unprocessable: The provider refuses a value.
        """
        payments = self.require_payments(tenant)
        if change.get("tax_id") is not None:
            change = {**change, "tax_id": normalise_tax_id(change["tax_id"])}  # type: ignore[arg-type]
        async with self.begin_change(tenant, context) as account:
            details = replace(account.details, **change)
            if details.name is None:
                async with self.uow.begin_reading(tenant) as tx:
                    details = replace(details, name=(await tx[OrgStore].get_organisation()).name)
            await payments.save_details(account.get_customer(), details, changes_tax_id="tax_id" in change)

    async def confirm_card(self, tenant: Tenant, context: AuditContext, key: str) -> Confirmation:
        """Return the secret with which the browser pays an incomplete subscription, or else stores a card."""
        payments = self.require_payments(tenant)
        async with self.begin_change(tenant, context) as account:
            subscription, secret = account.subscription, None
            if subscription is not None and subscription.latest_invoice is not None and _is_incomplete(subscription):
                secret = await payments.find_payment_secret(subscription.latest_invoice)
            if subscription is not None and secret is not None:
                async with self.uow.begin_reading(tenant) as tx:
                    [invoice] = await tx[BillingStore].find_invoices([subscription.latest_invoice or ""])
                amount = Money(invoice.amount_due, invoice.currency)
                return Confirmation(ConfirmationKind.PAYMENT, secret, subscription.id, amount)
            return Confirmation(ConfirmationKind.SETUP, await payments.create_card_setup(account.get_customer(), key))

    async def create_invoice(self, tenant: Tenant, context: AuditContext, new: NewInvoice) -> None:
        """Create an invoice at the provider; nothing happens if there is one with the same cause."""
        payments = self.require_payments(tenant)
        async with self.begin_change(tenant, context) as account:
            await payments.create_invoice(account.get_customer(), new)

    async def synchronise(
        self, tenant: Tenant, context: AuditContext, *, all_invoices: bool = False, ended_lease: datetime | None = None
    ) -> Sequence[str]:
        """Read the provider's state and store it; return the names of the stored parts that differed.

        Of concurrent calls, the result of the call that began last is stored.

        Args:
            tenant: The tenant.
            context: The request or job.
            all_invoices: Whether all invoices are compared, instead of the newest 100.
            ended_lease: The end of the lease of the change that has ended, so that others may begin afterwards.
        """
        if self.payments is None:
            return []
        async with self.uow.begin(tenant, context) as tx:
            account = await tx.store(BillingAccount).get(ACCOUNT_ID, lock=True)
            if account is None or account.customer is None:
                return []
            account = replace(account, reads=account.reads + 1)
            await tx.store(BillingAccount).save(account)
        state = await self.payments.fetch_account(account.get_customer(), all_invoices=all_invoices)
        async with self.uow.begin(tenant, context) as tx:
            return await self._store_state(tx, state, account.reads, all_invoices, ended_lease)

    async def delete_customer(self, tenant: Tenant) -> None:
        """Delete the organisation's customer at the provider, which ends the subscription.

        Raises FeatureUnavailable if there is a customer, but no provider is configured.
        """
        async with self.uow.begin_reading(tenant) as tx:
            account = await load_account(tx)
        if account.customer is not None:
            await self.require_payments(tenant).delete_customer(account.customer)

    async def end_grace(self, tenant: Tenant, context: AuditContext) -> None:
        """Withdraw the plan of a subscription whose grace period has ended, without a request to the provider."""
        async with self.uow.begin(tenant, context) as tx:
            account = await tx.store(BillingAccount).get(ACCOUNT_ID, lock=True)
            if account is not None:
                await self._save_account(tx, account, account)

    async def _store_state(
        self, tx: Tx, state: ProviderAccount, read: int, all_invoices: bool, ended_lease: datetime | None
    ) -> Sequence[str]:
        """Store the provider's state, unless a later one or another customer is stored; return the parts that differed.

        An account whose customer was deleted gets another customer when it is used next.
        """
        before = await tx.store(BillingAccount).get(ACCOUNT_ID, lock=True)
        if before is None:
            return []
        after = _release_lease(before, ended_lease)
        if read <= before.applied_read or state.customer != before.customer:  # a deleted customer has a successor
            await tx.store(BillingAccount).save(after)
            return []
        if state.is_deleted:  # a change that is in progress cannot continue
            await tx[BillingStore].void_open_invoices()  # the provider does not list them any more
            after = replace(
                after,
                customer=None,
                currency=None,
                card=None,
                subscription=None,
                grace_ends_at=None,
                applied_read=read,
                busy_until=None,
            )
            return await self._save_account(tx, before, after)
        differing = [*await self._store_invoices(tx, state.invoices, all_invoices)]
        overdue = await tx[BillingStore].find_overdue_invoice(state.subscription) if state.subscription else None
        after = replace(
            after,
            currency=state.currency or before.currency,
            details=state.details,
            card=state.card,
            subscription=state.subscription,
            grace_ends_at=find_grace_end(state.subscription, overdue),
            applied_read=read,
            reconciled_at=tx.now if all_invoices else before.reconciled_at,
        )
        return [*differing, *await self._save_account(tx, before, after)]

    async def _store_invoices(self, tx: Tx, invoices: Sequence[Invoice], is_complete: bool) -> Sequence[str]:
        """Store the invoices and update the purchases; return the IDs of those that differed.

        The amounts of refunds decrease only if all invoices and refunds were read (`is_complete`).
        """
        stored = {
            one.provider_id: one for one in await tx[BillingStore].find_invoices([one.provider_id for one in invoices])
        }
        differing, current = [], []
        for invoice in reversed(invoices):  # IDs ascend with the time of creation
            known = stored.get(invoice.provider_id)
            named = replace(invoice, id=new_id("inv"))
            if known is not None:  # refunds of an older charge may be missing, and a refund may fail later
                refunded = invoice.refunded if is_complete else max(invoice.refunded, known.refunded)
                named = replace(invoice, id=known.id, refunded=refunded)
            current.append(named)
            if known is None:
                await tx.store(Invoice).add(named)
            elif named != known:
                await tx.store(Invoice).save(named)
            if named != known:
                differing.append(named.id)
        return [*differing, *await self.apply_purchases(tx, current)]

    async def _save_account(self, tx: Tx, before: BillingAccount, after: BillingAccount) -> Sequence[str]:
        """Save the account with the plan that its subscription grants; return the names of the audited fields that differ."""
        subscription = after.subscription
        granted = subscription.plan if subscription and is_entitled(subscription, after.grace_ends_at, tx.now) else None
        if granted is not None and granted not in {plan.code for plan in await tx[OrgStore].list_plans()}:
            _LOG.warning("subscription to an unknown plan", extra={"org": tx.tenant.org, "plan": granted})
            granted = None
        after = replace(after, granted_plan=granted)
        await self._record_plans(tx, before, after)
        change = AUDITED_ACCOUNT_FIELDS.describe_update(before, after)
        differing = sorted(change.before.keys() | change.after.keys())
        if differing:
            after = replace(after, version=before.version + 1, updated_at=tx.now)
            await tx[AuditLog].add(change)
        await tx.store(BillingAccount).save(after)
        return differing

    async def _record_plans(self, tx: Tx, before: BillingAccount, after: BillingAccount) -> None:
        """Set the organisation's plan, and record the days of the month on which usage is charged."""
        billing, today, granted = tx[BillingStore], tx.now.date(), after.granted_plan
        month, is_recorded = find_month_start(today), False
        if before.granted_plan is not None and before.subscription is not None:
            period_end = before.subscription.current_period_end.date()
            is_recorded = period_end > month
            if is_recorded:
                await billing.begin_plan(month, before.granted_plan, month)
            if granted is None:
                ended_on = min(today, period_end)  # the end may be noticed in the next month
                await billing.end_plans(find_month_start(ended_on), ended_on)
        # a period that ended before the month may be the last one, until the provider has begun another one
        if granted is not None and after.subscription and after.subscription.current_period_end.date() > month:
            # the days before an upgrade are those of the plan before it
            await billing.begin_plan(month, granted, today if before.granted_plan is None or is_recorded else month)
        if granted != before.granted_plan:
            previous = (await tx[OrgStore].get_organisation()).plan.code
            if before.granted_plan is None and previous != FREE_PLAN:  # a plan that the operator had set
                await billing.begin_plan(month, previous, today)
            await billing.set_entitlement(granted or FREE_PLAN, bills_overage=granted is not None)

    @asynccontextmanager
    async def begin_change(
        self, tenant: Tenant, context: AuditContext, *, all_invoices: bool = False
    ) -> AsyncIterator[BillingAccount]:
        """Begin a change of the account, whose state at the provider is stored before and after the change.

        With `all_invoices`, all invoices are compared, as in `synchronise`.

        Raises Unavailable if another change is in progress, or if the change takes too long.
        """
        await self.open_account(tenant, context)
        async with self.uow.begin(tenant, context) as tx:
            account = await _lock_account(tx)
            if account.busy_until is not None and account.busy_until > tx.now:
                raise Unavailable("Another change of the billing account is in progress. Try again.", retry_after=5)
            lease = tx.now + CHANGE_LEASE
            await tx.store(BillingAccount).save(replace(account, busy_until=lease))
        try:
            async with asyncio.timeout(CHANGE_TIMEOUT.total_seconds()):
                await self.synchronise(tenant, context, all_invoices=all_invoices)
                async with self.uow.begin_reading(tenant) as tx:
                    account = await load_account(tx)
                account.get_customer()  # raises if the customer was deleted
                yield account
        except BaseException as error:
            await self._end_failed_change(tenant, context, lease)
            if isinstance(error, TimeoutError):
                raise Unavailable("The payment provider is too slow. Try again.", retry_after=30) from error
            raise
        await self.synchronise(tenant, context, all_invoices=all_invoices, ended_lease=lease)

    async def open_account(self, tenant: Tenant, context: AuditContext) -> BillingAccount:
        """Return the account; an account without a customer of the provider gets one."""
        payments = self.require_payments(tenant)
        async with self.uow.begin(tenant, context) as tx:
            organisation = await tx[OrgStore].get_organisation()
            account = await _lock_account(tx)
        if account.customer is not None:
            return account
        customer = await payments.create_customer(organisation.id, organisation.name, new_id("req"))
        async with self.uow.begin(tenant, context) as tx:
            account = await _lock_account(tx)
            if account.customer is None:
                account = replace(account, customer=customer)
                await tx.store(BillingAccount).save(account)
        return account

    async def _end_failed_change(self, tenant: Tenant, context: AuditContext, lease: datetime) -> None:
        """Permit other changes after one that failed, whose effect at the provider may be unknown."""
        try:
            await self.synchronise(tenant, context, ended_lease=lease)
        except Exception as error:
            _LOG.warning("billing account not synchronised: %r", error, extra={"org": tenant.org})
            async with self.uow.begin(tenant, context) as tx:
                account = await tx.store(BillingAccount).get(ACCOUNT_ID, lock=True)
                if account is not None:
                    await tx.store(BillingAccount).save(_release_lease(account, lease))


async def _lock_account(tx: Tx) -> BillingAccount:
    """Return the account, which is locked until the transaction ends; it is created if there is none."""
    store = tx.store(BillingAccount)
    if (account := await store.get(ACCOUNT_ID, lock=True)) is not None:
        return account
    account = BillingAccount(created_at=tx.now, updated_at=tx.now)
    with suppress(Conflict):  # if another request has created it
        async with tx.savepoint():
            await store.add(account)
    return await store.get(ACCOUNT_ID, lock=True) or account


def _release_lease(account: BillingAccount, lease: datetime | None) -> BillingAccount:
    """Return the account without the lease, unless another change holds one."""
    return replace(account, busy_until=None) if account.busy_until == lease else account


async def load_account(tx: Tx) -> BillingAccount:
    """Return the billing account of the tenant, or an empty one if none is stored."""
    return await tx.store(BillingAccount).get(ACCOUNT_ID) or BillingAccount(created_at=tx.now, updated_at=tx.now)


async def load_prices(tx: Tx) -> tuple[Sequence[Plan], Sequence[PlanPrice]]:
    """Return all plans, and the stored prices of plans."""
    return await tx[OrgStore].list_plans(), await tx[BillingStore].list_prices()


def _require_subscription(account: BillingAccount) -> PlanSubscription:
    if account.subscription is None:
        raise Conflict("Your organisation has no subscription. Select a plan first.")
    return account.subscription


def _is_incomplete(subscription: PlanSubscription) -> bool:
    return subscription.status is SubscriptionStatus.INCOMPLETE
