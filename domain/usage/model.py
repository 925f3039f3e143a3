"""Use of language models."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class ModelUse:
    """One call of a language model.

    `task` is its purpose, `subject` the id of what it concerned; the cost is in millionths of a dollar. Calls are
    recorded whether or not the response was useful. A call whose process died before recording is missing, except for
    the judge, which records the maximum cost beforehand.
    """

    id: str
    task: str
    subject: str
    model: str
    input_tokens: int
    output_tokens: int
    cost_micros: int
    created_at: datetime
