"""Payments in memory with a virtual clock."""

from calendar import monthrange
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import count
from typing import Final

from domain.billing.model import (
    BillingDetails,
    Card,
    ChangePreview,
    Invoice,
    InvoiceLine,
    InvoiceStatus,
    Period,
    PlanSubscription,
    PricedPlan,
    ProviderAccount,
    ScheduledChange,
    SubscriptionStatus,
)
from domain.billing.ports import NewInvoice, Payments, ProviderEvent
from domain.kernel.errors import CurrencyUnsupported, PaymentDeclined, Unprocessable

DRAFT_PERIOD: Final = timedelta(hours=1)
"""Time for which the invoice of a renewal is a draft."""
RETRIES: Final = (timedelta(days=3), timedelta(days=5), timedelta(days=7))
"""Times after the first failed payment of a renewal at which the card is charged again; the last failure ends the subscription."""
INCOMPLETE_PERIOD: Final = timedelta(hours=23)


def add_months(anchor: datetime, months: int) -> datetime:
    """Return the time `months` months after the anchor, on the last day of a month that is too short."""
    year, month = divmod(anchor.month - 1 + months, 12)
    year, month = anchor.year + year, month + 1
    return anchor.replace(year=year, month=month, day=min(anchor.day, monthrange(year, month)[1]))


def prorate(monthly: int, since: datetime, period: Period) -> int:
    """Return the part of the monthly price for the rest of the period, rounded half away from zero."""
    rest, whole = (int((period.end - one).total_seconds()) for one in (since, period.start))
    return (2 * monthly * rest + whole) // (2 * whole)


@dataclass
class _Customer:
    """State of a customer.

    Attributes:
        declines: Whether payments with the card fail.
        balance: Credit in minor units that the next invoice uses.
        anchor: Start of the first period.
        next_plan: The plan of the scheduled change.
        own_invoices: The invoices of the current subscription.
        attempts: The times at which the card is charged next, by invoice of a renewal.
    """

    details: BillingDetails
    currency: str | None = None
    card: Card | None = None
    declines: bool = False
    subscription: PlanSubscription | None = None
    plan: PricedPlan | None = None
    next_plan: PricedPlan | None = None
    anchor: datetime | None = None
    balance: int = 0
    invoices: list[Invoice] = field(default_factory=list)
    own_invoices: set[str] = field(default_factory=set)
    attempts: dict[str, list[datetime]] = field(default_factory=dict)


class MemoryPayments(Payments):
    """Payments that exist only in this process.

    Attributes:
        now: The virtual time, which `advance` moves.
        customers: The customers by ID.
    """

    publishable_key = "pk_memory"
    is_live = False

    def __init__(self, now: datetime) -> None:
        self.now, self.customers = now.replace(microsecond=0), dict[str, _Customer]()
        self._results: dict[str, str] = {}
        self._numbers = count(1)

    def store_card(self, customer: str, card: Card, *, declines: bool = False) -> None:
        """Store the card that is charged from now on, as the browser does; payments with it fail if it `declines`."""
        self.customers[customer].card, self.customers[customer].declines = card, declines

    def confirm_payment(self, invoice: str, card: Card) -> None:
        """Pay an open invoice with the card, as the browser does; that of a subscription is charged from now on."""
        state = self._find_owner(invoice)
        if self._get_invoice(invoice).cause is None:
            state.card, state.declines = card, False
        self._settle(state, invoice)

    def advance(self, to: datetime) -> None:
        """Move the clock, and renew, change and end the subscriptions that are due on the way."""
        for customer in self.customers.values():
            while (due := self._find_due(customer)) is not None and due <= to:
                self.now = max(self.now, due)
                self._process_due(customer)
        self.now = max(self.now, to.replace(microsecond=0))

    async def create_customer(self, org: str, name: str, key: str) -> str:
        if key not in self._results:
            self._results[key] = self._create_id("cus")
            self.customers[self._results[key]] = _Customer(BillingDetails(name))
        return self._results[key]

    async def delete_customer(self, customer: str) -> None:
        self.customers.pop(customer, None)

    async def save_details(self, customer: str, details: BillingDetails, *, changes_tax_id: bool) -> None:
        self.customers[customer].details = details

    async def fetch_account(self, customer: str, *, all_invoices: bool = False) -> ProviderAccount:
        state = self.customers[customer]
        return ProviderAccount(
            customer=customer,
            currency=state.currency,
            details=state.details,
            card=state.card,
            subscription=state.subscription,
            invoices=[one for one in state.invoices[::-1] if one.status is not InvoiceStatus.DRAFT],
        )

    async def create_card_setup(self, customer: str, key: str) -> str:
        return f"seti_{customer}_secret"

    async def find_payment_secret(self, invoice: str) -> str | None:
        return f"{invoice}_secret" if self._get_invoice(invoice).status is InvoiceStatus.OPEN else None

    async def preview_subscription(self, customer: str, plan: PricedPlan) -> ChangePreview:
        period = Period(self.now, add_months(self.now, 1))
        lines = [InvoiceLine(plan.name, plan.monthly, period)]
        return ChangePreview(plan.code, plan.currency, lines, plan.monthly, plan.monthly, period.end, self.now)

    async def preview_change(
        self, subscription: PlanSubscription, plan: PricedPlan, prorated_from: datetime | None
    ) -> ChangePreview:
        lines = self._prorate_change(subscription, plan, prorated_from) if prorated_from is not None else []
        due = sum(line.amount for line in lines) - self._find_subscriber(subscription).balance
        end = subscription.current_period_end
        return ChangePreview(plan.code, plan.currency, lines, max(0, due), plan.monthly, end, prorated_from or end)

    async def subscribe(
        self, customer: str, plan: PricedPlan, promotion_code: str | None, key: str, *, charges_card: bool
    ) -> None:
        state = self.customers[customer]
        self._use_currency(state, plan.currency)
        if promotion_code is not None:
            raise Unprocessable.for_field("promotion_code", "invalid_value", "This promotion code is not valid.")
        if key in self._results:
            return
        self._results[key] = self._create_id("sub")
        state.plan, state.anchor = plan, self.now
        end = add_months(self.now, 1)
        state.subscription = PlanSubscription(
            self._results[key],
            SubscriptionStatus.INCOMPLETE,
            plan.code,
            plan.currency,
            plan.monthly,
            plan.monthly,
            self.now,
            end,
        )
        self._invoice_period(state)
        if charges_card:
            try:
                await self.pay_invoice(state.subscription.latest_invoice or "")
            except PaymentDeclined:
                await self.cancel_now(state.subscription)
                raise

    async def change_plan(
        self, subscription: PlanSubscription, plan: PricedPlan, prorated_from: datetime, key: str
    ) -> None:
        state = self._find_subscriber(subscription)
        if key in self._results:
            return
        lines = self._prorate_change(subscription, plan, prorated_from)
        if sum(line.amount for line in lines) > state.balance and (state.card is None or state.declines):
            raise PaymentDeclined
        self._results[key] = subscription.id
        state.plan, state.next_plan = plan, None
        invoice = self._add_invoice(state, lines, subscription=subscription.id)
        self._settle(state, invoice)
        assert state.subscription is not None
        state.subscription = replace(
            state.subscription,
            plan=plan.code,
            price=plan.monthly,
            next_price=plan.monthly,
            cancel_at_period_end=False,
            cancel_at=None,
            scheduled_change=None,
            latest_invoice=invoice,
        )

    async def schedule_change(self, subscription: PlanSubscription, plan: PricedPlan, key: str) -> None:
        state = self._find_subscriber(subscription)
        state.next_plan = plan
        change = ScheduledChange(plan.code, subscription.interval, subscription.current_period_end)
        assert state.subscription is not None
        state.subscription = replace(
            state.subscription,
            scheduled_change=change if plan.code != subscription.plan else None,
            next_price=plan.monthly,
            cancel_at_period_end=False,
            cancel_at=None,
        )

    async def cancel_scheduled_change(self, subscription: PlanSubscription) -> None:
        state = self._find_subscriber(subscription)
        if state.subscription is not None:
            changes = {"scheduled_change": None, "next_price": state.subscription.price}
            state.next_plan, state.subscription = None, replace(state.subscription, **changes)

    async def set_cancellation(self, subscription: PlanSubscription, *, at_period_end: bool) -> None:
        state = self._find_subscriber(subscription)
        if state.subscription is not None:
            end = state.subscription.current_period_end if at_period_end else None
            state.subscription = replace(state.subscription, cancel_at_period_end=at_period_end, cancel_at=end)

    async def cancel_now(self, subscription: PlanSubscription) -> None:
        state = self._find_subscriber(subscription)
        if state.subscription is not None and state.subscription.latest_invoice is not None:
            await self.void_invoice(state.subscription.latest_invoice)
        self._end(state)

    async def create_invoice(self, customer: str, new: NewInvoice) -> str:
        state = self.customers[customer]
        self._use_currency(state, new.currency)
        existing = next((one for one in state.invoices if one.cause == new.cause), None)
        if existing is not None:
            return existing.provider_id
        invoice = self._add_invoice(state, list(new.lines), cause=new.cause)
        if new.is_charged:
            self._charge(state, invoice)
        return invoice

    async def preview_invoice(self, customer: str, amount: int, currency: str) -> tuple[int, int]:
        return 0, amount

    async def pay_invoice(self, invoice: str) -> None:
        if self._get_invoice(invoice).status is not InvoiceStatus.PAID and not self._charge(
            self._find_owner(invoice), invoice
        ):
            raise PaymentDeclined

    async def void_invoice(self, invoice: str) -> None:
        if self._get_invoice(invoice).status is InvoiceStatus.OPEN:
            self._change_invoice(invoice, status=InvoiceStatus.VOID, amount_due=0, has_failed=False)

    async def refund_invoice(self, invoice: str, amount: int, key: str) -> None:
        found = self._get_invoice(invoice)
        if found.status is not InvoiceStatus.PAID or found.refunded + amount > found.total:
            raise Unprocessable("Less was paid than the amount.")
        if key not in self._results:
            self._results[key] = invoice
            self._change_invoice(invoice, refunded=found.refunded + amount)

    def parse_event(self, body: bytes, signature: str) -> ProviderEvent:
        return ProviderEvent(signature, body.decode())

    def _create_id(self, prefix: str) -> str:
        return f"{prefix}_{next(self._numbers)}"

    def _use_currency(self, state: _Customer, currency: str) -> None:
        if state.currency not in (None, currency):
            raise CurrencyUnsupported(f"The customer is charged in {state.currency}.")
        state.currency = currency

    def _find_subscriber(self, subscription: PlanSubscription) -> _Customer:
        return next(
            (one for one in self.customers.values() if one.subscription and one.subscription.id == subscription.id),
            _Customer(BillingDetails()),
        )

    def _find_owner(self, invoice: str) -> _Customer:
        return next(
            one for one in self.customers.values() if any(known.provider_id == invoice for known in one.invoices)
        )

    def _get_invoice(self, invoice: str) -> Invoice:
        return next(one for one in self._find_owner(invoice).invoices if one.provider_id == invoice)

    def _change_invoice(self, invoice: str, **changes: object) -> None:
        invoices = self._find_owner(invoice).invoices
        position = next(number for number, one in enumerate(invoices) if one.provider_id == invoice)
        invoices[position] = replace(invoices[position], **changes)  # type: ignore[arg-type]

    def _add_invoice(
        self, state: _Customer, lines: list[InvoiceLine], *, cause: str | None = None, subscription: str | None = None
    ) -> str:
        """Add an open invoice, which uses the balance; a negative total becomes balance."""
        total = sum(line.amount for line in lines)
        used = min(state.balance, total) if total > 0 else total
        state.balance -= used
        provider_id = self._create_id("in")
        state.invoices.append(
            Invoice(
                id="",
                provider_id=provider_id,
                number=provider_id.upper(),
                status=InvoiceStatus.OPEN,
                currency=state.currency or "",
                total=total,
                tax=0,
                amount_due=total - used,
                lines=tuple(lines),
                cause=cause,
                subscription=subscription,
                created_at=self.now,
            )
        )
        if total - used == 0:
            self._settle(state, provider_id)
        return provider_id

    def _invoice_period(self, state: _Customer) -> str:
        subscription = state.subscription
        assert subscription is not None
        assert state.plan is not None
        period = Period(subscription.current_period_start, subscription.current_period_end)
        invoice = self._add_invoice(
            state, [InvoiceLine(state.plan.name, subscription.price, period)], subscription=subscription.id
        )
        state.subscription = replace(state.subscription or subscription, latest_invoice=invoice)
        state.own_invoices.add(invoice)
        if self._get_invoice(invoice).status is InvoiceStatus.PAID:
            self._settle(state, invoice)
        return invoice

    def _charge(self, state: _Customer, invoice: str) -> bool:
        """Charge the card for an invoice; return whether that succeeded."""
        if state.card is None or state.declines:
            self._change_invoice(invoice, has_failed=True)
            return False
        self._settle(state, invoice)
        return True

    def _settle(self, state: _Customer, invoice: str) -> None:
        """Mark an invoice as paid, and the subscription as active unless another of its invoices is open."""
        self._change_invoice(invoice, status=InvoiceStatus.PAID, amount_due=0, has_failed=False, paid_at=self.now)
        state.attempts.pop(invoice, None)
        is_open = any(self._get_invoice(one).status is InvoiceStatus.OPEN for one in state.own_invoices)
        if state.subscription is not None and invoice in state.own_invoices and not is_open:
            state.subscription = replace(state.subscription, status=SubscriptionStatus.ACTIVE)

    def _prorate_change(self, subscription: PlanSubscription, plan: PricedPlan, since: datetime) -> list[InvoiceLine]:
        period = Period(subscription.current_period_start, subscription.current_period_end)
        rest = Period(since, period.end)
        return [
            InvoiceLine("Unused time", -prorate(subscription.price, since, period), rest, is_proration=True),
            InvoiceLine(plan.name, prorate(plan.monthly, since, period), rest, is_proration=True),
        ]

    def _end(self, state: _Customer) -> None:
        state.subscription = state.plan = state.next_plan = None
        state.attempts.clear()
        state.own_invoices.clear()

    def _find_due(self, customer: _Customer) -> datetime | None:
        """Return the time of the next change of the customer's subscription."""
        times = [attempts[0] for attempts in customer.attempts.values()]
        subscription = customer.subscription
        if subscription is not None and subscription.status is SubscriptionStatus.INCOMPLETE:
            times.append(subscription.current_period_start + INCOMPLETE_PERIOD)
        elif subscription is not None:
            times.append(subscription.current_period_end)
        return min(times, default=None)

    def _process_due(self, customer: _Customer) -> None:
        subscription = customer.subscription
        if subscription is not None and subscription.status is SubscriptionStatus.INCOMPLETE:
            if subscription.latest_invoice is not None:
                self._change_invoice(subscription.latest_invoice, status=InvoiceStatus.VOID, amount_due=0)
            self._end(customer)
        elif subscription is not None and subscription.current_period_end <= self.now:
            self._renew(customer, subscription)
        else:
            self._attempt(customer, next(one for one, times in customer.attempts.items() if times[0] <= self.now))

    def _renew(self, customer: _Customer, subscription: PlanSubscription) -> None:
        """Begin the next period with a draft of its invoice, or end a cancelled subscription."""
        if subscription.cancel_at_period_end:
            self._end(customer)
            return
        plan, customer.next_plan = customer.next_plan or customer.plan, None
        assert plan is not None
        assert customer.anchor is not None
        customer.plan = plan
        start = subscription.current_period_end
        months = (start.year - customer.anchor.year) * 12 + start.month - customer.anchor.month
        customer.subscription = replace(
            subscription,
            plan=plan.code,
            price=plan.monthly,
            next_price=plan.monthly,
            scheduled_change=None,
            current_period_start=start,
            current_period_end=add_months(customer.anchor, months + 1),
        )
        invoice = self._invoice_period(customer)
        if self._get_invoice(invoice).status is InvoiceStatus.OPEN:
            self._change_invoice(invoice, status=InvoiceStatus.DRAFT)
            customer.attempts[invoice] = [self.now + DRAFT_PERIOD]

    def _attempt(self, customer: _Customer, invoice: str) -> None:
        """Charge the card for the invoice of a renewal; after the last failure, end the subscription."""
        is_first = self._get_invoice(invoice).status is InvoiceStatus.DRAFT
        self._change_invoice(invoice, status=InvoiceStatus.OPEN)
        if self._charge(customer, invoice):
            return
        times = [self.now + delay for delay in RETRIES] if is_first else customer.attempts[invoice][1:]
        if times and customer.subscription is not None:
            customer.attempts[invoice] = times
            customer.subscription = replace(customer.subscription, status=SubscriptionStatus.PAST_DUE)
        else:
            self._end(customer)
