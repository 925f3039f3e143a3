"""Result of testing what a run over a stored file would do."""

from collections.abc import Sequence
from dataclasses import dataclass

from domain.events.model import Event


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """Outcome that a run over a stored file would have.

    Attributes:
        items: Number of items in the file.
        events: The events that the run would cause.
        withdrawn: Number of products, variants and offers that the run would withdraw.
        error: The error with which the run would end, or None. A time limit that is exceeded counts as an error.
    """

    rows: int
    items: int
    problems: int
    events: Sequence[Event]
    withdrawn: int
    error: Exception | None
