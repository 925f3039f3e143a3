"""Rates at which language models use credit: stored ones, and the configured prices as defaults."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias

from domain.credits.model import CreditRate, CreditRates, require_notice
from domain.credits.ports import CreditRateRegistry
from ports.clock import Clock

TokenPrices: TypeAlias = Mapping[str, tuple[int, int]]
"""Configured prices by model: micro-US-dollars per million input and output tokens."""


def select_rates(stored: Sequence[CreditRate], prices: TokenPrices, now: datetime) -> CreditRates:
    """Return the rates that apply now, by model, and announced ones.

    Args:
        stored: Stored rates, by model and time.
        prices: The configured prices, rounded up, which apply to models without a stored rate.
        now: The time.
    """
    always = datetime.min.replace(tzinfo=UTC)
    current = {
        model: CreditRate(model, -(-input_price // 1000), -(-output_price // 1000), always)
        for model, (input_price, output_price) in prices.items()
    }
    current |= {rate.model: rate for rate in stored if rate.effective_at <= now}
    return CreditRates(
        [current[model] for model in sorted(current)], [rate for rate in stored if rate.effective_at > now]
    )


@dataclass(frozen=True, slots=True)
class RateService:
    """Use cases of operators for rates.

    Attributes:
        prices: The configured prices.
    """

    registry: CreditRateRegistry
    clock: Clock
    prices: TokenPrices

    async def list_rates(self) -> CreditRates:
        """Return the rates that apply now, and announced ones."""
        return select_rates(await self.registry.list_rates(), self.prices, self.clock.now())

    async def set_rate(
        self, model: str, input_micros: int, output_micros: int, effective_at: datetime | None
    ) -> CreditRate:
        """Store a rate per 1,000 tokens that applies from a time, or from now.

        Raises PriceNoticeTooShort if the rate is higher than one that applies then, and does not apply in 30 days or later.
        """
        now = self.clock.now()
        rate = CreditRate(model, input_micros, output_micros, max(effective_at or now, now))
        applying = select_rates(await self.registry.list_rates(), self.prices, rate.effective_at).models
        is_rise = any(
            rate.input_micros_per_1k > before.input_micros_per_1k
            or rate.output_micros_per_1k > before.output_micros_per_1k
            for before in applying
            if before.model == model
        )
        if is_rise:
            require_notice(rate.effective_at, now)
        await self.registry.add_rate(rate)
        return rate
