"""Seventh step: under measured pressure the less important requests are refused, so that the others get through."""

from typing import Final

from domain.kernel.errors import Overloaded
from entrypoints.http.pressure import Pressure
from entrypoints.http.request_state import RequestState

FIRST: Final = {"export": 1, "expensive": 2, "stream": 2}
"""The pressure from which requests of a class are shed (docs/conventions.md#load-shedding)."""
STANDARD_READS: Final = 3
NEVER: Final = 4
RETRY: Final = {1: 2, 2: 5, 3: 10}
"""Seconds to wait by level."""


def shed_from(rate: str, tier: str) -> int:
    """The level from which a request of that class and tier is shed."""
    if rate == "read" and tier == "standard":
        return STANDARD_READS
    return FIRST.get(rate, NEVER)


class ShedLoad:
    """Compares the request's priority with the process's pressure."""

    def __init__(self, pressure: Pressure) -> None:
        self._pressure = pressure

    def __call__(self, state: RequestState) -> None:
        """Raises Overloaded."""
        level = self._pressure.level
        if level == 0:
            return
        route = state.match.route
        rate = route.operation.rate if route else "read"
        if level >= shed_from(rate, state.caller.organisation.plan.tier):
            raise Overloaded(retry_after=RETRY[level])
