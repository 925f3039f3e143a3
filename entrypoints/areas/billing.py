"""Billing: /v1/billing."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from adapters.api_json import billing as wire
from domain.billing.model import Confirmation, ConfirmationKind, CreditPurchase, Invoice, PurchaseKind
from domain.billing.usecases.accounts import BillingService
from domain.billing.usecases.purchases import PurchaseService, build_purchase, get_purchase
from domain.billing.usecases.synchronisation import RECONCILIATION_JOB, SYNCHRONISATION_JOB, AccountSynchroniser
from domain.billing.usecases.top_ups import TopUps
from domain.billing.usecases.usage_charges import CHARGING_JOB, UsageCharges
from domain.credits.usecases.ledger import CreditLedger
from domain.jobs.usecases.lane_processor import Handler
from domain.jobs.usecases.ticks import Tick
from domain.kernel.paging import Page
from entrypoints.areas.credits import OPERATIONS as CREDIT_OPERATIONS
from entrypoints.areas.credits import create_credit_ticks
from entrypoints.dependencies import Dependencies
from entrypoints.operations.operation import Area, ExternalCall, Read, ReadContext, Reply, WriteContext
from ports.unit_of_work import UnitOfWork


@dataclass(frozen=True, slots=True)
class BillingServices:
    """Use cases of the area."""

    accounts: BillingService
    purchases: PurchaseService
    ledger: CreditLedger


BillingReadContext: TypeAlias = ReadContext[BillingServices]
BillingWriteContext: TypeAlias = WriteContext[BillingServices]
Outside: TypeAlias = Callable[[], Awaitable[Reply]]
_OUTSIDE_WARNING: Final = "The payment provider is not contacted in a dry run, so its decision is unknown."


def _create_services(uow: UnitOfWork, accounts: BillingService, ledger: CreditLedger) -> BillingServices:
    return BillingServices(accounts, PurchaseService(uow, accounts), ledger)


async def read_account(context: BillingReadContext) -> Reply:
    """Return the billing account."""
    balance = await context.service.ledger.get_balance(context.tx)
    view = await context.service.accounts.get_view(context.tx, balance.available_micros)
    return context.build_resource_reply(wire.ACCOUNT, view)


def _change_account(
    change: Callable[[BillingWriteContext], Awaitable[None]],
) -> Callable[[BillingWriteContext], Awaitable[Outside]]:
    """Return the handler of an operation that changes the account, and returns the account afterwards.

    In a dry run, the account is returned without a change.
    """

    async def handle(context: BillingWriteContext) -> Outside:
        service, tenant = context.service, context.tx.tenant
        service.accounts.require_payments(tenant)
        context.tx.recorded.warnings.append(_OUTSIDE_WARNING)
        unchanged = await read_account(context) if context.tx.is_dry_run else None

        async def execute() -> Reply:
            if unchanged is not None:
                return unchanged
            await change(context)
            async with service.accounts.uow.begin_reading(tenant) as context.tx:
                return await read_account(context)

        return execute

    return handle


async def _subscribe(context: BillingWriteContext) -> None:
    await context.service.accounts.subscribe(
        context.principal.tenant, context.audit_context, context.command, context.request_key
    )


async def _cancel(context: BillingWriteContext) -> None:
    await context.service.accounts.cancel(context.principal.tenant, context.audit_context)


async def _resume(context: BillingWriteContext) -> None:
    await context.service.accounts.resume(context.principal.tenant, context.audit_context)


async def _cancel_scheduled_change(context: BillingWriteContext) -> None:
    await context.service.accounts.cancel_scheduled_change(context.principal.tenant, context.audit_context)


async def _change_details(context: BillingWriteContext) -> None:
    await context.service.accounts.change_details(context.principal.tenant, context.audit_context, context.command)


async def preview_subscription(context: BillingWriteContext) -> Outside:
    """Return the function that computes what a change of plan costs."""
    compute = await context.service.accounts.preview(context.tx, context.audit_context, context.command)

    async def reply() -> Reply:
        return context.build_resource_reply(wire.PREVIEW, await compute())

    return reply


async def confirm_card(context: BillingWriteContext) -> Outside:
    """Return the function that begins the confirmation of a payment or a card."""
    context.service.accounts.require_payments(context.principal.tenant)
    context.tx.recorded.warnings.append(_OUTSIDE_WARNING)
    is_dry_run = context.tx.is_dry_run

    async def confirm() -> Reply:
        if is_dry_run:
            return context.build_resource_reply(wire.CONFIRMATION, Confirmation(ConfirmationKind.SETUP, "dry_run"))
        confirmation = await context.service.accounts.confirm_card(
            context.principal.tenant, context.audit_context, context.request_key
        )
        return context.build_resource_reply(wire.CONFIRMATION, confirmation)

    return confirm


async def preview_purchase(context: BillingWriteContext) -> Outside:
    """Return the function that computes the price of credit."""
    context.service.accounts.require_payments(context.principal.tenant)
    is_dry_run = context.tx.is_dry_run

    async def compute() -> Reply:
        preview = await context.service.purchases.preview(
            context.principal.tenant, context.audit_context, context.command, is_dry_run=is_dry_run
        )
        return context.build_resource_reply(wire.PURCHASE_PREVIEW, preview)

    return compute


async def buy_credit(context: BillingWriteContext) -> Outside:
    """Return the function that creates a purchase of credit."""
    context.service.accounts.require_payments(context.principal.tenant)
    context.tx.recorded.warnings.append(_OUTSIDE_WARNING)

    is_dry_run = context.tx.is_dry_run

    async def buy() -> Reply:
        if is_dry_run:
            purchase = build_purchase(context.command, "", PurchaseKind.MANUAL, context.now)
            return context.build_created_reply(wire.PURCHASE, purchase)
        purchase = await context.service.purchases.buy(
            context.principal.tenant, context.audit_context, context.command, context.request_key
        )
        return context.build_created_reply(wire.PURCHASE, purchase)

    return buy


async def list_invoices(context: BillingReadContext) -> Reply:
    """Return a page of the invoices, newest first."""
    page: Page[Invoice] = await context.tx.store(Invoice).page(context.page_request)
    return context.build_list_reply(wire.INVOICE, page)


async def list_purchases(context: BillingReadContext) -> Reply:
    """Return a page of the purchases of credit, newest first."""
    page: Page[CreditPurchase] = await context.tx.store(CreditPurchase).page(context.page_request)
    return context.build_list_reply(wire.PURCHASE, page)


async def read_purchase(context: BillingReadContext) -> Reply:
    """Return a purchase of credit."""
    return context.build_resource_reply(wire.PURCHASE, await get_purchase(context.tx, context.ids["purchase"]))


_NO_UNDO: Final = "The payment provider has received the change. Make the opposite change instead."


def _write(id: str, path: str, summary: str, description: str, handler: Any, **options: Any) -> ExternalCall:
    """Return an operation that contacts the payment provider and returns the billing account."""
    attributes: dict[str, Any] = {
        "id": f"billing.{id}",
        "path": f"/v1/billing/{path}",
        "method": "POST",
        "scope": "billing:write",
        "caller_kind": "member_session",
        "reply": wire.ACCOUNT.schema,
        "errors": ("conflict", "unprocessable", "feature_unavailable"),
        "undo": _NO_UNDO,
    }
    return ExternalCall(summary=summary, description=description, handler=handler, **{**attributes, **options})


def _create_ticks(
    synchroniser: AccountSynchroniser, charges: UsageCharges, top_ups: TopUps, dependencies: Dependencies
) -> Sequence[Tick]:
    return [
        *dependencies.call(create_credit_ticks),
        Tick("billing reconciliation", 3_600, synchroniser.queue_reconciliations),
        Tick("billing grace periods", 60, synchroniser.end_grace_periods),
        Tick("usage charges", 3_600, charges.close_months),
        Tick("automatic credit purchases", 600, top_ups.buy_due),
    ]


def _create_synchronisation_handler(synchroniser: AccountSynchroniser) -> Handler:
    return lambda job, _: synchroniser.synchronise(job)


def _create_reconciliation_handler(synchroniser: AccountSynchroniser) -> Handler:
    return lambda job, _: synchroniser.reconcile(job)


def _create_charging_handler(charges: UsageCharges) -> Handler:
    return lambda job, _: charges.create_usage_invoice(job)


OPERATIONS: Final = (
    *CREDIT_OPERATIONS,
    Read(
        id="billing.read",
        path="/v1/billing",
        summary="Read the billing account",
        description="Returns plan, subscription, card, billing details and credit of your organisation, and the plans with their prices. "
        "`enabled` is false if the service does not sell plans, and in test mode; all changes then return 403 `feature_unavailable`.",
        handler=read_account,
        scope="billing:read",
        reply=wire.ACCOUNT.schema,
        dataset="billing_account",
    ),
    _write(
        "preview",
        "preview",
        "Preview a change of plan",
        "Returns what a new subscription or a change of plan costs now and at the next invoice, and the quotas that the organisation "
        "exceeds. A more expensive plan applies now, and the rest of the period is charged from the start of the day (UTC); a cheaper "
        "plan applies from the next period.",
        preview_subscription,
        scope="billing:read",
        caller_kind="any",
        body=wire.PREVIEW_BODY,
        reply=wire.PREVIEW.schema,
        errors=("unprocessable", "currency_unsupported", "feature_unavailable"),
        undo="A preview changes nothing.",
    ),
    _write(
        "subscribe",
        "subscription",
        "Subscribe to a plan, or change the plan",
        "Subscribes to the plan. With a card, it is charged immediately. Otherwise the subscription is `incomplete` until the payment is "
        "confirmed with POST /v1/billing/card. A more expensive plan than the current one applies now, and the card is charged for the "
        "rest of the period; if the card is declined, nothing changes (402). A cheaper plan is scheduled for the end of the period.",
        _change_account(_subscribe),
        body=wire.SUBSCRIPTION_BODY,
        errors=("payment_declined", "conflict", "unprocessable", "currency_unsupported", "feature_unavailable"),
    ),
    _write(
        "cancel",
        "subscription/cancel",
        "Cancel the subscription",
        "The subscription ends with the current period; the organisation then has the free plan. An incomplete subscription ends now.",
        _change_account(_cancel),
    ),
    _write(
        "resume",
        "subscription/resume",
        "Resume the subscription",
        "Undoes the cancellation, before the period has ended.",
        _change_account(_resume),
    ),
    _write(
        "cancel_scheduled_change",
        "subscription/scheduled-change/cancel",
        "Cancel the scheduled change of plan",
        "The organisation keeps its current plan.",
        _change_account(_cancel_scheduled_change),
    ),
    _write(
        "confirm_card",
        "card",
        "Confirm a card or a payment",
        "Returns the secret with which Stripe.js in the browser stores a card, or pays the first invoice of an incomplete subscription. "
        "Card data goes from the browser to Stripe only.",
        confirm_card,
        caller_kind="person",
        reply=wire.CONFIRMATION.schema,
        encrypts_replay=True,
    ),
    _write(
        "update_details",
        "details",
        "Change the billing details",
        "Changes name, email address, address and tax ID on future invoices. Omitted fields keep their values.",
        _change_account(_change_details),
        method="PATCH",
        caller_kind="person",
        body=wire.DETAILS_BODY,
    ),
    Read(
        id="billing.list_invoices",
        path="/v1/billing/invoices",
        summary="List invoices",
        description="Returns the invoices of your organisation, newest first. A line for usage states the meter and the quantity that "
        "is charged.",
        handler=list_invoices,
        scope="billing:read",
        reply=wire.INVOICE.list_schema,
        paging="both",
        dataset="invoices",
    ),
    Read(
        id="billing.list_purchases",
        path="/v1/billing/credits/purchases",
        summary="List purchases of credit",
        description="Returns the purchases of credit, newest first.",
        handler=list_purchases,
        scope="billing:read",
        reply=wire.PURCHASE.list_schema,
        paging="both",
        dataset="credit_purchases",
        agent=None,
    ),
    Read(
        id="billing.read_purchase",
        path="/v1/billing/credits/purchases/{purchase}",
        summary="Read a purchase of credit",
        description="Returns a purchase. After the browser has confirmed the payment, repeat the request until the status is `succeeded` "
        "or `failed`. A failed payment can be confirmed again with the same secret.",
        handler=read_purchase,
        scope="billing:read",
        reply=wire.PURCHASE.schema,
        errors=("not_found",),
        agent=None,
    ),
    _write(
        "preview_purchase",
        "credits/purchases/preview",
        "Preview a purchase of credit",
        "Returns the price of credit including tax, and when the credit expires.",
        preview_purchase,
        scope="billing:read",
        caller_kind="any",
        body=wire.CREDITS_BODY,
        reply=wire.PURCHASE_PREVIEW.schema,
        errors=("currency_unsupported", "feature_unavailable"),
        undo="A preview changes nothing.",
    ),
    _write(
        "create_purchase",
        "credits/purchases",
        "Buy credit",
        "Creates a purchase with its invoice. The browser confirms the payment with `confirmation.client_secret`; the credit is added when "
        "the invoice is paid, and expires after 12 months.",
        buy_credit,
        caller_kind="owner",
        body=wire.CREDITS_BODY,
        reply=wire.PURCHASE.schema,
        status=201,
        errors=("currency_unsupported", "feature_unavailable"),
    ),
)
AREA: Final = Area(
    "billing",
    "Billing",
    "Plan, subscription, card, invoices and prepaid credit of your organisation.",
    create_service=_create_services,
    operations=OPERATIONS,
    handler_factories={
        SYNCHRONISATION_JOB: _create_synchronisation_handler,
        RECONCILIATION_JOB: _create_reconciliation_handler,
        CHARGING_JOB: _create_charging_handler,
    },
    create_ticks=_create_ticks,
)
