"""One question put to a language model, and what it took."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class ModelUse:
    """`task` is what the question was for, `subject` the id of what it was about; the cost is in millionths of a dollar.

    Put down whether or not the answer was of any use. A question whose asker died before it could put that down is not
    here, but for the judge, who puts down the most that it can take before it asks.
    """

    id: str
    task: str
    subject: str
    model: str
    input_tokens: int
    output_tokens: int
    cost_micros: int
    created_at: datetime
