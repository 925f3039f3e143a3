"""Purchases of credit: each has an invoice of the payment provider, and adds credit when the invoice is paid."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from domain.audit.ports import AuditLog
from domain.billing.model import (
    AUDITED_PURCHASE_FIELDS,
    CREDIT_CURRENCY,
    BillingAccount,
    CreditPurchase,
    Invoice,
    InvoiceLine,
    InvoiceReference,
    InvoiceStatus,
    Period,
    PurchaseKind,
    PurchaseStatus,
    is_purchase,
)
from domain.billing.ports import BillingStore, NewInvoice
from domain.billing.usecases.accounts import BillingService
from domain.credits.model import MICROS_PER_CREDIT, EntryKind, compute_expiry
from domain.credits.usecases.ledger import CreditLedger
from domain.events.model import Event
from domain.events.ports import EventLog
from domain.kernel.errors import CurrencyUnsupported, IdempotencyKeyReused, NotFound, PaymentDeclined, Unprocessable
from domain.kernel.ids import new_id
from domain.kernel.tenancy import AuditContext, Tenant
from ports.unit_of_work import Tx

RenderPurchase = Callable[[CreditPurchase, Tenant, datetime], Mapping[str, Any]]
"""Function that renders a purchase as a resource."""
ResumeWork = Callable[[Tx, str], Awaitable[None]]
"""Function that resumes work; the text names the cause."""
_STATUS_BY_INVOICE: Final = {
    InvoiceStatus.PAID: PurchaseStatus.SUCCEEDED,
    InvoiceStatus.VOID: PurchaseStatus.FAILED,
    InvoiceStatus.UNCOLLECTIBLE: PurchaseStatus.FAILED,
}


@dataclass(frozen=True, slots=True)
class PurchasePreview:
    """Price of a purchase of credit, in minor units of CREDIT_CURRENCY; `expires_at` if it is paid now."""

    amount: int
    tax: int
    total: int
    credit_micros: int
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class PurchaseUpdater:
    """Updates purchases from their invoices, in the transaction that stores the invoices.

    Attributes:
        resume_work: Resumes work that waits for credit.
    """

    ledger: CreditLedger
    render_purchase: RenderPurchase
    resume_work: ResumeWork

    async def apply(self, tx: Tx, invoices: Sequence[Invoice]) -> Sequence[str]:
        """Update the purchases that the invoices belong to; return the IDs of those that changed.

        Credit is added once, when the invoice is paid, and removed in proportion to the refunded amount.
        """
        changed = []
        for invoice in invoices:
            before = (
                await tx.store(CreditPurchase).get(invoice.cause or "", lock=True)
                if is_purchase(invoice.cause)
                else None
            )
            if before is None:
                continue
            after = _update(before, invoice)
            if after == before:
                continue
            changed.append(after.id)
            await tx.store(CreditPurchase).save(after)
            change = AUDITED_PURCHASE_FIELDS.describe_update(before, after)
            if change.after:
                await tx[AuditLog].add(change)
            if after.status is PurchaseStatus.SUCCEEDED and before.status is not PurchaseStatus.SUCCEEDED:
                assert after.expires_at is not None
                await self.ledger.add_lot(tx, EntryKind.PURCHASE, after.credit_micros, after.id, after.expires_at)
                data = {**self.render_purchase(after, tx.tenant, tx.now), "version": 1}
                await tx[EventLog].append([Event("credits.purchased", after.id, 1, data)])
                await self.resume_work(tx, after.id)
            if after.refunded > before.refunded:
                micros = after.credit_micros * after.refunded // after.total
                await self.ledger.set_refunded(tx, after.id, micros)
        return changed


def _update(purchase: CreditPurchase, invoice: Invoice) -> CreditPurchase:
    """Return the purchase as its invoice states it; a purchase that succeeded stays so."""
    status = _STATUS_BY_INVOICE.get(
        invoice.status, PurchaseStatus.FAILED if invoice.has_failed else PurchaseStatus.REQUIRES_PAYMENT
    )
    if purchase.status is PurchaseStatus.SUCCEEDED:
        status = purchase.status
    return replace(
        purchase,
        status=status,
        invoice=InvoiceReference(invoice.id, invoice.number, invoice.hosted_invoice_url, invoice.invoice_pdf),
        tax=invoice.tax,
        total=invoice.total,
        refunded=invoice.refunded,
        client_secret=purchase.client_secret if invoice.status is InvoiceStatus.OPEN else None,
        paid_at=invoice.paid_at,
        expires_at=compute_expiry(invoice.paid_at) if invoice.paid_at else None,
    )


@dataclass(frozen=True, slots=True)
class PurchaseService:
    """Use cases of purchases of credit."""

    billing: BillingService

    async def preview(
        self, tenant: Tenant, context: AuditContext, credits: int, *, is_dry_run: bool = False
    ) -> PurchasePreview:
        """Return the price of credit; without tax in a dry run, which does not contact the provider.

        Raises CurrencyUnsupported as `buy` does.
        """
        payments, now, tax, total = self.billing.require_payments(tenant), self.billing.clock.now(), 0, credits
        if not is_dry_run:
            account = await self.billing.open_account(tenant, context)
            _check_currency(account)
            tax, total = await payments.preview_invoice(account.get_customer(), credits, CREDIT_CURRENCY)
        return PurchasePreview(credits, tax, total, credits * MICROS_PER_CREDIT, compute_expiry(now))

    async def buy(
        self, tenant: Tenant, context: AuditContext, credits: int, key: str, kind: PurchaseKind = PurchaseKind.MANUAL
    ) -> CreditPurchase:
        """Buy credit; the browser then confirms the payment. An automatic purchase charges the stored card.

        Args:
            tenant: The tenant.
            context: The request or job.
            credits: The number of credits.
            key: Key of the request. A repeated request returns the same purchase.
            kind: The kind of the purchase.

        Raises:
            CurrencyUnsupported: The account is charged in another currency than that of credit.
            IdempotencyKeyReused: The key belongs to a purchase of another number of credits.
        """
        payments = self.billing.require_payments(tenant)
        async with self.billing.begin_change(tenant, context) as account:
            _check_currency(account)
            async with self.billing.uow.begin(tenant, context) as tx:
                id = await tx[BillingStore].find_purchase(key)
                purchase = await get_purchase(tx, id) if id else build_purchase(credits, key, kind, tx.now)
                if id is None:
                    await tx.store(CreditPurchase).add(purchase)
                    await tx[AuditLog].add(AUDITED_PURCHASE_FIELDS.describe_creation(purchase))
                elif kind is PurchaseKind.MANUAL and purchase.credits != credits:
                    raise IdempotencyKeyReused
            # the parameters of repeated requests to the provider must not differ
            period = Period(purchase.created_at, purchase.created_at)
            line = InvoiceLine(f"{purchase.credits:,} credits", purchase.amount, period, purchase.credits)
            new, invoice = NewInvoice(purchase.id, CREDIT_CURRENCY, [line], is_charged=False), None
            try:
                invoice = await payments.create_invoice(account.get_customer(), new)
                if kind is PurchaseKind.AUTOMATIC:
                    await payments.pay_invoice(invoice)
            except (PaymentDeclined, Unprocessable, CurrencyUnsupported):  # such as without a card
                if kind is PurchaseKind.MANUAL:
                    raise
                if invoice is not None:  # its status determines that of the purchase
                    await payments.void_invoice(invoice)
                else:
                    async with self.billing.uow.begin(tenant, context) as tx:
                        await tx.store(CreditPurchase).save(replace(purchase, status=PurchaseStatus.FAILED))
            if kind is PurchaseKind.MANUAL and invoice is not None:
                secret = await payments.find_payment_secret(invoice)
                async with self.billing.uow.begin(tenant, context) as tx:
                    stored = await tx.store(CreditPurchase).get(purchase.id, lock=True)
                    if stored is not None:
                        await tx.store(CreditPurchase).save(replace(stored, client_secret=secret))
        async with self.billing.uow.begin_reading(tenant) as tx:
            return await get_purchase(tx, purchase.id)

    async def refund(self, tenant: Tenant, context: AuditContext, id: str, total: int | None = None) -> CreditPurchase:
        """Pay back a part of a purchase, and remove the same share of its credit.

        Args:
            tenant: The tenant.
            context: The command.
            id: ID of the purchase.
            total: The total of all refunds afterwards, in minor units; None for the whole price. A repeated call has
                therefore no further effect.

        Raises:
            NotFound: There is no such purchase.
            Unprocessable: The purchase is not paid, or its price is lower.
        """
        payments = self.billing.require_payments(tenant)
        async with self.billing.begin_change(tenant, context, all_invoices=True):  # the charge may be an old one
            async with self.billing.uow.begin_reading(tenant) as tx:
                purchase = await get_purchase(tx, id)
                invoice = await tx.store(Invoice).get(purchase.invoice.id if purchase.invoice else "")
            selected = purchase.total if total is None else total
            if invoice is None or invoice.status is not InvoiceStatus.PAID:
                raise Unprocessable(f"The purchase is not paid: its status is {purchase.status}.")
            if not 0 < selected <= purchase.total:
                raise Unprocessable(
                    f"The purchase cost {purchase.total} cents. State a total from 1 to {purchase.total} cents."
                )
            if selected > purchase.refunded:
                amount, key = selected - purchase.refunded, f"refund:{id}:{selected}"
                await payments.refund_invoice(invoice.provider_id, amount, key)
        async with self.billing.uow.begin_reading(tenant) as tx:
            return await get_purchase(tx, id)


async def get_purchase(tx: Tx, id: str) -> CreditPurchase:
    """Return a purchase. Raises NotFound."""
    found = await tx.store(CreditPurchase).get(id)
    if found is None:
        raise NotFound
    return found


def build_purchase(credits: int, key: str, kind: PurchaseKind, now: datetime) -> CreditPurchase:
    """Return a new purchase that is not paid."""
    return CreditPurchase(
        id=new_id("crp"),
        kind=kind,
        status=PurchaseStatus.REQUIRES_PAYMENT,
        credits=credits,
        request_key=key,
        amount=credits,
        total=credits,
        created_at=now,
    )


def _check_currency(account: BillingAccount) -> None:
    if account.currency not in (None, CREDIT_CURRENCY):
        raise CurrencyUnsupported(
            f"Credit is sold in {CREDIT_CURRENCY}, and your organisation is charged in {account.currency}. "
            "Ask the operator to add credit."
        )
