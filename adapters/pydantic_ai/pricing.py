"""Prices of language models, and the cost of requests in millionths of a dollar (whole numbers)."""

from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from typing import TYPE_CHECKING

from domain.kernel.clock import now
from ports.language_models import ModelUsage

if TYPE_CHECKING:
    from genai_prices.types import TieredPrices

_TOKENS_PER_PRICE = 1_000_000
"""Number of tokens that a price covers."""
MAX_NAME_CHARS = 100
"""Maximum characters of a model's name."""


@dataclass(frozen=True, slots=True)
class TokenPrice:
    """Price of a model, in millionths of a dollar per million tokens.

    Attributes:
        input_price: The price of input tokens.
        output_price: The price of output tokens.
    """

    input_price: int
    output_price: int

    def compute_usage(self, model: str, input_tokens: int, output_tokens: int) -> ModelUsage:
        """Return the usage of a model with its cost, rounded up, for these numbers of tokens."""
        cost = -(-(input_tokens * self.input_price + output_tokens * self.output_price) // _TOKENS_PER_PRICE)
        return ModelUsage(model[:MAX_NAME_CHARS], input_tokens, output_tokens, cost)


def find_list_price(provider: str, model: str) -> TokenPrice | None:
    """Return the provider's published price of a model at present; None if the model is unknown.

    The name must equal the model's ID in genai-prices. Where the price depends on the length of the input, the highest one is
    returned.
    """
    from genai_prices.data import providers  # noqa: PLC0415  slow to import, and seldom needed

    models = next((listed.models for listed in providers if listed.id == provider), ())
    info = next((listed for listed in models if listed.id == model), None)
    found = info and info.get_prices(now())
    if not found or found.input_mtok is None or found.output_mtok is None:
        return None
    return TokenPrice(_find_highest_price(found.input_mtok), _find_highest_price(found.output_mtok))


def _find_highest_price(price: "Decimal | TieredPrices") -> int:
    """Return the highest of a price's tiers, which are dollars per million tokens, in millionths of a dollar."""
    tiers = [price] if isinstance(price, Decimal) else [price.base, *(tier.price for tier in price.tiers)]
    return int((max(tiers) * 1_000_000).to_integral_value(ROUND_CEILING))
