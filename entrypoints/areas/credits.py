"""Credit: operations and ticks of the ledger, which the area `billing` includes (/v1/billing/credits)."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from adapters.api_json import credits as wire
from domain.audit.model import AuditAct
from domain.credits.model import CREDIT_SETTINGS_ID, CreditSettingsChange
from domain.credits.ports import CreditStore, CreditUpkeep
from domain.credits.usecases.ledger import CreditExpirer, CreditLedger, CreditSettingsService
from domain.credits.usecases.rates import select_rates
from domain.jobs.usecases.ticks import Tick
from domain.matching.usecases.judge import resume_judging
from entrypoints.operations.collection import Collection
from entrypoints.operations.operation import ReadContext, Reply, UndoSupport, WriteContext
from ports.clock import Clock
from ports.unit_of_work import Tx, UnitOfWork

CreditReadContext: TypeAlias = ReadContext[Any]
CreditWriteContext: TypeAlias = WriteContext[Any]
"""The service of the area is its `BillingServices`."""
SETTINGS_SERVICE: Final = CreditSettingsService()


def create_credit_ticks(uow: UnitOfWork, upkeep: CreditUpkeep, clock: Clock, ledger: CreditLedger) -> Sequence[Tick]:
    """Create the ticks that expire reservations and lots, and delete ended reservations by age."""
    expirer = CreditExpirer(uow, upkeep, clock, ledger)
    return [
        Tick("credit expiry", 60, expirer.process_expiry),
        Tick("old credit reservations", 3600, expirer.delete_reservations, is_purge=True),
    ]


async def read_credits(context: CreditReadContext) -> Reply:
    """Return the balance."""
    return context.build_resource_reply(wire.CREDIT_BALANCE, await context.service.ledger.get_balance(context.tx))


async def list_entries(context: CreditReadContext) -> Reply:
    """Return a page of the ledger's entries."""
    page = await context.tx[CreditStore].page_entries(context.page_request)
    return context.build_list_reply(wire.CREDIT_ENTRY, page)


async def read_rates(context: CreditReadContext) -> Reply:
    """Return the rates that apply, and announced ones."""
    stored = await context.tx[CreditStore].list_rates()
    rates = select_rates(stored, context.service.token_prices, context.tx.now)
    return context.build_resource_reply(wire.CREDIT_RATES, rates)


async def update_settings(context: CreditWriteContext) -> Reply:
    """Change the settings."""
    changes: Mapping[str, Any] = context.command
    settings = await SETTINGS_SERVICE.update(context.tx, CREDIT_SETTINGS_ID, changes)
    if settings.auto_spend:
        await resume_judging(context.tx, f"settings:{settings.version}")
    return context.build_resource_reply(wire.CREDIT_SETTINGS, settings)


async def _undo_settings(_: object, tx: Tx, act: AuditAct) -> None:
    await SETTINGS_SERVICE.undo(tx, act)


_CREDITS: Final = Collection("billing", wire.CREDIT_BALANCE, "billing", noun="credits")
_ENTRIES: Final = Collection("billing", wire.CREDIT_ENTRY, "billing")
_RATES: Final = Collection("billing", wire.CREDIT_RATES, "billing", noun="rates")
_SETTINGS: Final = Collection("billing", wire.CREDIT_SETTINGS, "billing", noun="credit_settings")

OPERATIONS: Final = (
    _CREDITS.read(
        "Read the credit balance",
        "Returns the organisation's prepaid credit in this mode: what is available and reserved, the lots with their expiry, and the "
        "settings. Amounts are in millionths of a US dollar.",
        handler=read_credits,
        path=wire.CREDIT_BALANCE.path,
        dataset="credit_balance",
        agent=None,
    ),
    _ENTRIES.list(
        "List credit entries",
        "Returns every change of the available credit, newest first. The sum of all entries is the available credit. Credit is spent "
        "(`spend`) when it is reserved for a request, and what the request did not use is released (`release`).",
        id="billing.list_entries",
        handler=list_entries,
        dataset="credit_entries",
        agent=None,
    ),
    _RATES.read(
        "Read the rates of language models",
        "Returns the rate of each language model per 1,000 tokens, and announced changes. A rise is announced at least 30 days before it "
        "applies.",
        handler=read_rates,
        path=wire.CREDIT_RATES.path,
        agent=None,
    ),
    _SETTINGS.write(
        "update",
        "Change the credit settings",
        "Omitted fields keep their values. Credit is spent only if `auto_spend` is true, and at most `monthly_budget_micros` in a month "
        "(UTC). The event `credits.low` is sent when credit falls below `low_balance_micros`.",
        handler=update_settings,
        method="PATCH",
        path=wire.CREDIT_SETTINGS.path,
        body=wire.CREDIT_SETTINGS.build_patch_body(CreditSettingsChange),
        caller_kind="owner",
        errors=("conflict",),
        agent=None,
        undo=UndoSupport("The previous settings are restored.", _undo_settings),
    ),
)
