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


def sudo(back: str) -> Callable[[View], View]:
    """Guard a view; `back` is the page with its form, which one comes back to when a form was sent too late."""

    def guarded(view: View) -> View:
        @wraps(view)
        async def proved(visit: Visit) -> Answer:
            if is_sudo(visit):
                return await view(visit)
            place = back if visit.asked.method == "POST" else visit.asked.place
            return visit.redirect(f"{CONFIRM}?next={quote(place, safe='/')}")

        return proved

    return guarded
