"""The ledger of prepaid credit: lots, reservations, refunds and expiry, with their events.

Every change is one call of `CreditStore.apply`, which first applies what has expired. Credit is spent at reservation,
and the unused rest is released at settlement, so the sum of the entries is always the available credit.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from domain.audit.resources import SettingsService
from domain.credits.model import (
    AUDITED_CREDIT_SETTINGS,
    CREDIT_SETTINGS_ID,
    CreditAction,
    CreditBalance,
    CreditLot,
    CreditSettings,
    EntryKind,
)
from domain.credits.ports import CreditStore, CreditUpkeep
from domain.events.model import Event
from domain.events.ports import EventLog
from domain.jobs.usecases.ticks import log_errors
from domain.kernel import retention
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from domain.usage.model import ModelUse
from ports.clock import Clock
from ports.language_models import ModelUsage
from ports.unit_of_work import Tx, UnitOfWork

RESERVATION_TIMEOUT = timedelta(minutes=15)
"""Age at which a reservation expires, so that its credit is available again."""
EXPIRY_NOTICE = timedelta(days=30)
"""Time before the expiry of a lot at which the event `credits.expiring` is sent."""
MAX_TENANTS: Final = 1_000
"""Maximum number of tenants that are processed in one run of the task."""
_LOG = logging.getLogger("joinery.credits")
_CONTEXT = AuditContext(Actor("service", "scheduler"), "credits.expire")
RenderBalance = Callable[[CreditBalance, Tenant, datetime], Mapping[str, Any]]
"""Function that renders the balance as a resource."""
RenderLot = Callable[[CreditLot, Tenant, datetime], Mapping[str, Any]]
"""Function that renders a lot as a resource."""


class CreditSettingsService(SettingsService[CreditSettings]):
    """Use cases of a tenant's credit settings."""

    kind = CreditSettings
    audited = AUDITED_CREDIT_SETTINGS


@dataclass(frozen=True, slots=True)
class CreditLedger:
    """Use cases of a tenant's credit, in the caller's transaction, which should be short: the ledger is locked.

    Attributes:
        render_balance: Renders the balance for events.
        render_lot: Renders a lot for events.
    """

    render_balance: RenderBalance
    render_lot: RenderLot

    async def add_lot(
        self, tx: Tx, kind: EntryKind, micros: int, reference: str, expires_at: datetime, id: str | None = None
    ) -> None:
        """Add a lot, unless the reference has one already.

        Args:
            tx: The transaction.
            kind: PURCHASE or ADJUSTMENT.
            micros: The amount in micro-US-dollars.
            reference: ID of the purchase or adjustment.
            expires_at: When the lot expires.
            id: ID of the lot; by default a new one.
        """
        await self._apply(tx, [CreditAction(kind, reference, micros, expires_at, id or new_id("crl"))])

    async def set_refunded(self, tx: Tx, reference: str, total_micros: int) -> int:
        """Set how much of a lot was refunded in total, and remove the increase from the lot.

        A refund removes at most the credit that is neither spent nor reserved at that time. A total that is not higher than an
        earlier one has no effect. The total may be known before the lot is added.

        Args:
            tx: The transaction.
            reference: Reference of the lot.
            total_micros: Total of all refunds.

        Returns:
            The credit that all refunds have removed from the lot.
        """
        [removed] = await self._apply(tx, [CreditAction("refund", reference, total_micros, None, new_id("crl"))])
        return removed

    async def reserve(self, tx: Tx, reference: str, micros: int) -> bool:
        """Reserve credit; see `reserve_all`."""
        return (await self.reserve_all(tx, [(reference, micros)]))[0]

    async def reserve_all(self, tx: Tx, reservations: Sequence[tuple[str, int]]) -> Sequence[bool]:
        """Reserve credit for each reference and amount, the earliest expiry first.

        A reservation fails if the available credit or the monthly budget does not suffice, if credit may not be spent
        (`CreditSettings.auto_spend`), or if the reservation was released before.

        Returns:
            For each reservation, whether it exists or is settled already.
        """
        expires_at = tx.now + RESERVATION_TIMEOUT
        actions = [CreditAction("reserve", reference, micros, expires_at) for reference, micros in reservations]
        return [*map(bool, await self._apply(tx, actions))]

    async def settle(self, tx: Tx, reference: str, micros: int) -> int:
        """Settle a reservation at the actual cost; see `settle_all`."""
        return (await self.settle_all(tx, [(reference, micros)]))[0]

    async def settle_all(self, tx: Tx, costs: Sequence[tuple[str, int]]) -> Sequence[int]:
        """Settle each reservation at its actual cost, and release the rest.

        A cost that exceeds the reservation, or belongs to an expired one, is spent as far as credit is available. Unknown, released and
        settled reservations do not change.

        Returns:
            For each reservation, the credit that it has spent.
        """
        return await self._apply(tx, [CreditAction("settle", reference, micros) for reference, micros in costs])

    async def compute_charge(self, tx: Tx, usage: ModelUse | ModelUsage) -> int:
        """Return the credit that a use of a model costs: at the rate that applies now, or its cost if no rate is stored."""
        stored = await tx[CreditStore].list_rates()
        rates = [rate for rate in stored if rate.model == usage.model and rate.effective_at <= tx.now]
        if not rates:
            return usage.cost_micros
        input_micros = usage.input_tokens * rates[-1].input_micros_per_1k
        return -(-(input_micros + usage.output_tokens * rates[-1].output_micros_per_1k) // 1000)

    async def release(self, tx: Tx, reference: str) -> None:
        """Release an open reservation."""
        await self._apply(tx, [CreditAction("release", reference)])

    async def get_balance(self, tx: Tx) -> CreditBalance:
        """Return the available and reserved credit, the lots with remaining credit, and the settings."""
        available, reserved = await tx[CreditStore].get_totals()
        settings = await CreditSettingsService().get(tx, CREDIT_SETTINGS_ID)
        return CreditBalance(available, reserved, await tx[CreditStore].list_lots(), settings)

    async def process_expiry(self, tx: Tx) -> None:
        """Apply what has expired, and announce lots that expire within EXPIRY_NOTICE."""
        await self._apply(tx, [])
        lots = await tx[CreditStore].announce_expiry(tx.now + EXPIRY_NOTICE)
        await tx[EventLog].append(
            [
                Event("credits.expiring", lot.id, 1, {**self.render_lot(lot, tx.tenant, tx.now), "version": 1})
                for lot in lots
            ]
        )

    async def _apply(self, tx: Tx, actions: Sequence[CreditAction]) -> Sequence[int]:
        """Apply the actions, with an event if credit has become low or is exhausted; return the results.

        Reserved credit counts until it is settled, so reservations that are released cause no events.
        """
        outcome = await tx[CreditStore].apply(actions)
        low = CreditSettings().low_balance_micros if outcome.low_balance is None else outcome.low_balance
        types = ["credits.low"] if outcome.after < low <= outcome.before else []
        if outcome.after == 0 < outcome.before:
            types.append("credits.exhausted")
        if types:
            balance = self.render_balance(await self.get_balance(tx), tx.tenant, tx.now)
            data = {**balance, "id": tx.tenant.org, "version": 1}
            await tx[EventLog].append([Event(type, tx.tenant.org, 1, data) for type in types])
        return outcome.results


@dataclass(frozen=True, slots=True)
class CreditExpirer:
    """Scheduled tasks that apply what has expired; concurrent runs do no harm."""

    uow: UnitOfWork
    upkeep: CreditUpkeep
    clock: Clock
    ledger: CreditLedger

    async def process_expiry(self) -> None:
        """Process each tenant with expired reservations or lots, or lots that expire soon; errors are logged."""
        now = self.clock.now()
        for tenant in await self.upkeep.list_due(now, now + EXPIRY_NOTICE, MAX_TENANTS):
            with log_errors(_LOG, "credit could not be expired", tenant):
                async with self.uow.begin(tenant, _CONTEXT) as tx:
                    await self.ledger.process_expiry(tx)

    async def delete_reservations(self) -> None:
        """Delete ended reservations by age."""
        await self.upkeep.delete_reservations(self.clock.now() - retention.CREDIT_RESERVATIONS)
