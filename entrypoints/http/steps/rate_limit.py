"""Sixth step: one request out of the organisation's, or a signed-in person's, budget of the rate class (docs/conventions.md#rate-limits)."""

from dataclasses import dataclass
from math import ceil
from typing import Final

from domain.kernel.errors import RateLimited
from entrypoints.http.request_state import RequestState
from ports.limits import Budget, Limits, Take

TIERS: Final[dict[str, dict[str, tuple[float, int]]]] = {
    "standard": {"read": (100, 200), "write": (20, 40), "expensive": (2, 5), "export": (1 / 60, 2), "stream": (1, 5)},
    "high": {"read": (500, 1000), "write": (100, 200), "expensive": (10, 20), "export": (0.1, 10), "stream": (5, 20)},
    "max": {"read": (2000, 4000), "write": (400, 800), "expensive": (40, 80), "export": (0.5, 60), "stream": (20, 50)},
}
"""Tier to class to (requests a second, burst)."""
SHARED: Final = frozenset({"expensive", "export"})
"""Classes of larger work, which presses the machine alike whoever starts it; of the others, each person who is signed in has a budget."""
_MOST_BUDGETS: Final = 20_000


@dataclass(frozen=True, slots=True)
class _Charge:
    """A budget with the words that tell about it."""

    budget: Budget
    name: str
    policy: bytes


def charge_of(org: str, livemode: bool, tier: str, rate: str, user: str | None = None) -> _Charge:
    """The budget of an organisation's mode and class; of a person of its own, where theirs does not count alike."""
    per_second, burst = TIERS[tier][rate]
    whose = f":{user}" if user is not None and rate not in SHARED else ""
    budget = Budget(f"{org}:{'live' if livemode else 'test'}:{rate}{whose}", burst, per_second)
    name = f"{tier}.{rate}"
    return _Charge(budget, name, f'"{name}";q={burst};w={ceil(round(burst / per_second, 6))}'.encode())


class RateLimit:
    """Takes one token. The same headers stand on refusals and on whatever the request is answered in the end."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._charges: dict[tuple[str, bool, str, str, str | None], _Charge] = {}

    async def __call__(self, state: RequestState) -> None:
        """Raises RateLimited when the budget is spent."""
        charge = self._charge(state)
        take = await self._limits.take(charge.budget)
        state.budget = [
            (b"ratelimit-policy", charge.policy),
            (b"ratelimit", b'"%s";r=%d;t=%d' % (charge.name.encode(), take.left, ceil(take.full_in))),
        ]
        if not take.allowed:
            raise self._refusal(charge, take)

    def _charge(self, state: RequestState) -> _Charge:
        caller, route = state.caller, state.match.route
        tier = caller.organisation.plan.tier
        rate = route.operation.rate if route else "read"
        user = caller.user if caller.session else None
        key = (caller.tenant.org, caller.tenant.livemode, tier if tier in TIERS else "standard", rate, user)
        charge = self._charges.get(key)
        if charge is None:
            if len(self._charges) >= _MOST_BUDGETS:
                self._charges.clear()
            charge = self._charges[key] = charge_of(*key)
        return charge

    @staticmethod
    def _refusal(charge: _Charge, take: Take) -> RateLimited:
        wait = max(1, ceil(take.next_in))
        return RateLimited(
            f"The budget {charge.name} is spent; one request is free again in {wait} s.",
            retry_after=wait,
            extra={"violated-policies": [charge.name]},
        )
