"""What visitors may have done only so often, since each time asks somebody else's server."""

from domain.kernel.errors import RateLimited
from entrypoints.console.visit import Visit
from ports.limits import Budget


async def take_turn(visit: Visit, budget: Budget) -> None:
    """Take one from the budget. Raises RateLimited, with the seconds until there is one again."""
    taken = await visit.dependencies.limits.take(budget)
    if not taken.allowed:
        raise RateLimited(retry_after=max(1, int(taken.next_in) + 1))
