"""Billing: /v1/billing."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeAlias

from adapters.api_json import billing as wire
from domain.billing.model import Confirmation, ConfirmationKind, CreditPurchase, Invoice, PurchaseKind
from domain.billing.usecases.accounts import BillingService
from domain.billing.usecases.automatic_purchases import AutomaticPurchaser
from domain.billing.usecases.purchases import PurchaseService, build_purchase, get_purchase
from domain.billing.usecases.synchronisation import RECONCILIATION_JOB, SYNCHRONISATION_JOB, AccountSynchroniser
from domain.billing.usecases.usage_charges import CHARGING_JOB, MonthCloser
from domain.credits.usecases.ledger import CreditLedger
from domain.credits.usecases.rates import TokenPrices
from domain.jobs.usecases.lane_processor import Handler
from domain.jobs.usecases.ticks import Tick
from domain.kernel.paging import Page
from entrypoints.areas.credits import OPERATIONS as CREDIT_OPERATIONS
from entrypoints.areas.credits import create_credit_ticks
from entrypoints.dependencies import Dependencies
from entrypoints.operations.operation import Area, ExternalCall, Read, ReadContext, Reply, WriteContext
from entrypoints.settings import Settings


@dataclass(frozen=True, slots=True)
class BillingServices:
    """Use cases of the area, and the configured prices of language models."""

    accounts: BillingService
    purchases: PurchaseService
    ledger: CreditLedger
    token_prices: TokenPrices


BillingReadContext: TypeAlias = ReadContext[BillingServices]
BillingWriteContext: TypeAlias = WriteContext[BillingServices]
Handle: TypeAlias = Callable[[BillingWriteContext], Awaitable[Reply]]
Check: TypeAlias = Callable[[BillingWriteContext], Awaitable[object]]
_DRY_RUN_WARNING: Final = "The payment provider is not contacted in a dry run, so its decision is unknown."


def _create_services(accounts: BillingService, ledger: CreditLedger, settings: Settings) -> BillingServices:
    return BillingServices(accounts, PurchaseService(accounts), ledger, settings.token_prices)


async def read_account(context: BillingReadContext) -> Reply:
    """Return the billing account."""
    balance = await context.service.ledger.get_balance(context.tx)
    view = await context.service.accounts.get_view(context.tx, balance.available_micros)
    return context.build_resource_reply(wire.ACCOUNT, view)


def _contact_provider(
    handle: Handle, handle_dry_run: Handle | None = None, check: Check | None = None
) -> Callable[[BillingWriteContext], Awaitable[Callable[[], Awaitable[Reply]] | Reply]]:
    """Return the handler of an operation that contacts the payment provider.

    Args:
        handle: Contacts the provider; called after the request's transaction.
        handle_dry_run: Returns the reply of a dry run, in which the provider is not contacted. None for a preview, which
            changes nothing.
        check: Raises the errors that are known without the provider, or None.
    """

    async def prepare(context: BillingWriteContext) -> Callable[[], Awaitable[Reply]] | Reply:
        context.service.accounts.require_payments(context.principal.tenant)
        if check is not None:
            await check(context)
        if context.tx.is_dry_run and handle_dry_run is not None:
            context.tx.recorded.warnings.append(_DRY_RUN_WARNING)
            return await handle_dry_run(context)
        return partial(handle, context)

    return prepare


def _change_account(change: Callable[[BillingWriteContext], Awaitable[None]], check: Check | None = None) -> Any:
    """Return the handler of an operation that changes the account, and returns the account afterwards."""

    async def handle(context: BillingWriteContext) -> Reply:
        await change(context)
        async with context.service.accounts.uow.begin_reading(context.principal.tenant) as tx:
            return await read_account(replace(context, tx=tx))

    return _contact_provider(handle, read_account, check)


async def _load_request(context: BillingWriteContext) -> None:
    await context.service.accounts.load_request(context.tx, context.command)


async def preview_subscription(context: BillingWriteContext) -> Reply:
    """Return what a change of plan costs."""
    preview = await context.service.accounts.preview(
        context.principal.tenant, context.audit_context, context.command, is_dry_run=context.tx.is_dry_run
    )
    return context.build_resource_reply(wire.PREVIEW, preview)


async def confirm_card(context: BillingWriteContext) -> Reply:
    """Begin the confirmation of a payment or a card."""
    confirmation = await context.service.accounts.confirm_card(
        context.principal.tenant, context.audit_context, context.request_key
    )
    return context.build_resource_reply(wire.CONFIRMATION, confirmation)


async def _build_example_confirmation(context: BillingWriteContext) -> Reply:
    return context.build_resource_reply(wire.CONFIRMATION, Confirmation(ConfirmationKind.SETUP, "dry_run"))


async def preview_purchase(context: BillingWriteContext) -> Reply:
    """Return the price of credit."""
    preview = await context.service.purchases.preview(
        context.principal.tenant, context.audit_context, context.command, is_dry_run=context.tx.is_dry_run
    )
    return context.build_resource_reply(wire.PURCHASE_PREVIEW, preview)


async def buy_credit(context: BillingWriteContext) -> Reply:
    """Create a purchase of credit."""
    purchase = await context.service.purchases.buy(
        context.principal.tenant, context.audit_context, context.command, context.request_key
    )
    return context.build_created_reply(wire.PURCHASE, purchase)


async def _build_unpaid_purchase(context: BillingWriteContext) -> Reply:
    purchase = build_purchase(context.command, "", PurchaseKind.MANUAL, context.now)
    return context.build_created_reply(wire.PURCHASE, purchase)


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


def _create_operation(id: str, path: str, summary: str, description: str, handler: Any, **options: Any) -> ExternalCall:
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
    synchroniser: AccountSynchroniser, closer: MonthCloser, purchaser: AutomaticPurchaser, dependencies: Dependencies
) -> Sequence[Tick]:
    return [
        *dependencies.call(create_credit_ticks),
        Tick("billing reconciliation", 3_600, synchroniser.queue_reconciliations),
        Tick("billing grace periods", 60, synchroniser.end_grace_periods),
        Tick("usage charges", 3_600, closer.close_months),
        Tick("automatic credit purchases", 600, purchaser.buy_due),
    ]


def _create_synchronisation_handler(synchroniser: AccountSynchroniser) -> Handler:
    return lambda job, _: synchroniser.synchronise(job)


def _create_reconciliation_handler(synchroniser: AccountSynchroniser) -> Handler:
    return lambda job, _: synchroniser.reconcile(job)


def _create_charging_handler(closer: MonthCloser) -> Handler:
    return lambda job, _: closer.create_usage_invoice(job)


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
    _create_operation(
        "preview",
        "preview",
        "Preview a change of plan",
        "Returns what a new subscription or a change of plan costs now and at the next invoice, and the quotas that the organisation "
        "exceeds. A more expensive plan applies now, and the rest of the period is charged from the start of the day (UTC); a cheaper "
        "plan applies from the next period.",
        _contact_provider(preview_subscription, check=_load_request),
        scope="billing:read",
        caller_kind="any",
        body=wire.PREVIEW_BODY,
        reply=wire.PREVIEW.schema,
        errors=("unprocessable", "currency_unsupported", "feature_unavailable"),
        undo="A preview changes nothing.",
    ),
    _create_operation(
        "subscribe",
        "subscription",
        "Subscribe to a plan, or change the plan",
        "Subscribes to the plan. With a card, it is charged immediately. Otherwise the subscription is `incomplete` until the payment is "
        "confirmed with POST /v1/billing/card. A more expensive plan than the current one applies now, and the card is charged for the "
        "rest of the period; if the card is declined, nothing changes (402). A cheaper plan is scheduled for the end of the period.",
        _change_account(
            lambda one: one.service.accounts.subscribe(
                one.principal.tenant, one.audit_context, one.command, one.request_key
            ),
            _load_request,
        ),
        body=wire.SUBSCRIPTION_BODY,
        errors=("payment_declined", "conflict", "unprocessable", "currency_unsupported", "feature_unavailable"),
    ),
    _create_operation(
        "cancel",
        "subscription/cancel",
        "Cancel the subscription",
        "The subscription ends with the current period; the organisation then has the free plan. An incomplete subscription ends now.",
        _change_account(lambda one: one.service.accounts.cancel(one.principal.tenant, one.audit_context)),
    ),
    _create_operation(
        "resume",
        "subscription/resume",
        "Resume the subscription",
        "Undoes the cancellation, before the period has ended.",
        _change_account(lambda one: one.service.accounts.resume(one.principal.tenant, one.audit_context)),
    ),
    _create_operation(
        "cancel_scheduled_change",
        "subscription/scheduled-change/cancel",
        "Cancel the scheduled change of plan",
        "The organisation keeps its current plan.",
        _change_account(
            lambda one: one.service.accounts.cancel_scheduled_change(one.principal.tenant, one.audit_context)
        ),
    ),
    _create_operation(
        "confirm_card",
        "card",
        "Confirm a card or a payment",
        "Returns the secret with which Stripe.js in the browser stores a card, or pays the first invoice of an incomplete subscription. "
        "Card data goes from the browser to Stripe only.",
        _contact_provider(confirm_card, _build_example_confirmation),
        caller_kind="person",
        reply=wire.CONFIRMATION.schema,
        encrypts_replay=True,
    ),
    _create_operation(
        "update_details",
        "details",
        "Change the billing details",
        "Changes name, email address, address and tax ID on future invoices. Omitted fields keep their values.",
        _change_account(
            lambda one: one.service.accounts.change_details(one.principal.tenant, one.audit_context, one.command)
        ),
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
    _create_operation(
        "preview_purchase",
        "credits/purchases/preview",
        "Preview a purchase of credit",
        "Returns the price of credit including tax, and when the credit expires.",
        _contact_provider(preview_purchase),
        scope="billing:read",
        caller_kind="any",
        body=wire.CREDITS_BODY,
        reply=wire.PURCHASE_PREVIEW.schema,
        errors=("unprocessable", "currency_unsupported", "feature_unavailable"),
        undo="A preview changes nothing.",
    ),
    _create_operation(
        "create_purchase",
        "credits/purchases",
        "Buy credit",
        "Creates a purchase with its invoice. The browser confirms the payment with `confirmation.client_secret`; the credit is added when "
        "the invoice is paid, and expires after 12 months.",
        _contact_provider(buy_credit, _build_unpaid_purchase),
        caller_kind="owner",
        body=wire.CREDITS_BODY,
        reply=wire.PURCHASE.schema,
        status=201,
        errors=("unprocessable", "currency_unsupported", "feature_unavailable"),
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
