"""Cost of requests to language models, in millionths of a dollar (whole numbers)."""

from dataclasses import dataclass

from ports.language_models import ModelUsage

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
