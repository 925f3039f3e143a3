"""Stub."""

from dataclasses import dataclass
from datetime import datetime

from ports.unit_of_work import Tx


@dataclass
class Balance:
    available_micros: int = 0


@dataclass(frozen=True)
class CreditLedger:
    """Stub."""

    async def add_lot(self, tx: Tx, kind: str, micros: int, reference: str, expires_at: datetime) -> None: ...
    async def set_refunded(self, tx: Tx, reference: str, total_micros: int) -> int:
        return 0

    async def get_balance(self, tx: Tx) -> Balance:
        return Balance()
