"""Calls of language models."""

from dataclasses import dataclass
from datetime import datetime

MAX_BUDGET_MICROS = 10**12
"""Maximum budget in millionths of a US dollar."""


@dataclass(frozen=True, slots=True)
class ModelUse:
    """One call of a language model, whether its answer was useful or not.

    Attributes:
        task: Purpose of the call.
        subject: ID of the object concerned.
        cost_micros: Cost in millionths of a US dollar.
        prepaid: Whether the cost is paid with credit, and not with a budget.
    """

    id: str
    task: str
    subject: str
    model: str
    input_tokens: int
    output_tokens: int
    cost_micros: int
    created_at: datetime
    prepaid: bool = False
