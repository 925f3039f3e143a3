"""Cost of questions, in whole millionths of a dollar."""

from dataclasses import dataclass

from ports.models import ModelUsage

_TOKENS = 1_000_000
"""Number of tokens that a price covers."""
LONGEST_NAME = 100
"""Characters of a model's name."""


@dataclass(frozen=True, slots=True)
class Price:
    """Price in micro-dollars for a million tokens of the request (`input`) and of the answer (`output`)."""

    input: int
    output: int

    def usage(self, model: str, input_tokens: int, output_tokens: int) -> ModelUsage:
        """Return the usage of these tokens; a fractional cost is rounded up."""
        cost = -(-(input_tokens * self.input + output_tokens * self.output) // _TOKENS)
        return ModelUsage(model[:LONGEST_NAME], input_tokens, output_tokens, cost)
