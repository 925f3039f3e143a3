"""What touches security is done by who has proved who they are just now: else one is led to prove it, and back."""

from collections.abc import Callable
from functools import wraps
from typing import Final
from urllib.parse import quote

from entrypoints.console.page import Answer, View
from entrypoints.console.visit import Visit

CONFIRM: Final = "/console/confirm"


def is_sudo(visit: Visit) -> bool:
    """Whether the person has proved who they are within the last minutes."""
    return visit.person.session.is_sudo(visit.dependencies.clock.now())


async def is_own(visit: Visit) -> bool:
    """Whether the person has shown something of their own, or has nothing yet.

    A provider speaks for people in its organisation alone; what signs in to all of them is theirs.
    """
    if not visit.person.session.only_vouched_for:
        return True
    accounts, user = visit.dependencies.accounts, visit.person.user.id
    return not (
        await accounts.passwords.has_one(user)
        or await accounts.factors.asks_for_code(user)
        or await accounts.passkeys.of_user(user)
    )


def sudo(back: str, *, own: bool = False) -> Callable[[View], View]:
    """Guard a view; `back` is the page with its form, which one comes back to when a form was sent too late.

    `own`: a provider's word does not count as a proof where the person has another.
    """

    def guarded(view: View) -> View:
        @wraps(view)
        async def proved(visit: Visit) -> Answer:
            if is_sudo(visit) and (not own or await is_own(visit)):
                return await view(visit)
            place = back if visit.asked.method == "POST" else visit.asked.place
            return visit.redirect(f"{CONFIRM}?next={quote(place, safe='/')}")

        return proved

    return guarded
