"""What questions cost, in whole millionths of a dollar."""

from dataclasses import dataclass

from ports.models import ModelUsage

_TOKENS = 1_000_000
"""Tokens that a price is for."""
LONGEST_NAME = 100
"""Characters of a model's name."""


@dataclass(frozen=True, slots=True)
class Price:
    """Micro-dollars for a million tokens that are read (`input`) and written (`output`)."""

    input: int
    output: int

    def usage(self, model: str, input_tokens: int, output_tokens: int) -> ModelUsage:
        """What so many tokens take. A cost with a fraction counts as the next whole one, so that nothing is lost."""
        cost = -(-(input_tokens * self.input + output_tokens * self.output) // _TOKENS)
        return ModelUsage(model[:LONGEST_NAME], input_tokens, output_tokens, cost)
