"""Security notices: in the person's account, and by mail where they are urgent."""

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from domain.kernel.ids import new_id
from domain.kernel.names import displayable_name, plain_agent
from domain.outbox.usecases import OutgoingMail
from domain.people.model import LONGEST_AGENT, SecurityEvent, User
from domain.people.ports import People
from domain.people.usecases.sessions import Visitor
from ports.clock import Clock

MAILED: Final[Mapping[str, tuple[str, str]]] = {
    "new_device": (
        "New sign-in to Joinery",
        "Somebody has signed in to your account from a browser that we do not know.",
    ),
    "password_changed": ("Your Joinery password was changed", "The password of your account was changed."),
    "authenticator_added": ("One-time codes are on", "Your account now asks for a one-time code at sign-in."),
    "authenticator_removed": ("One-time codes are off", "Your account no longer asks for a one-time code at sign-in."),
    "recovery_code_used": ("A recovery code was used", "Somebody has signed in to your account with a recovery code."),
    "passkey_added": ("A passkey was added", "Your account has a new passkey."),
    "passkey_removed": ("A passkey was removed", "A passkey of your account was removed."),
}
"""Notices that are also mailed: subject and first sentence."""
_FOOT = (
    "If that was you, there is nothing to do. If it was not, set another password ({base}/console/forgot), "
    "then look at your sessions ({base}/console/account) and end those that are not yours."
)
_LOG = logging.getLogger("joinery.people")


@dataclass(frozen=True, slots=True)
class Notices:
    """Sender of notices. `later` runs work in the background, so that its duration reveals nothing."""

    people: People
    mail: OutgoingMail
    clock: Clock
    base_url: str
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def notify(self, user: User, kind: str, visitor: Visitor, detail: str = "") -> None:
        """Record a notice in the person's account, and mail it if it is urgent."""
        now, agent = self.clock.now(), visitor.user_agent[:LONGEST_AGENT]
        await self.people.note(SecurityEvent(new_id("sec"), user.id, kind, detail, visitor.address, agent, now))
        if kind in MAILED:
            subject, sentence = MAILED[kind]
            facts = f"When: {now:%d %B %Y %H:%M} UTC\nFrom: {visitor.address or 'unknown'}\nBrowser: {plain_agent(agent) or 'unknown'}"
            body = f"Hello {displayable_name(user.called, 'there')},\n\n{sentence}\n\n{facts}\n\n{_FOOT.format(base=self.base_url)}\n"
            await self.mail.queue(user.email, subject, body, kind)

    def later(self, work: Coroutine[Any, Any, None]) -> None:
        """Run the work in the background; errors are logged."""
        task = asyncio.create_task(_logged(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def settled(self) -> None:
        """Wait for all background work."""
        while self._tasks:
            await asyncio.gather(*self._tasks)


async def _logged(work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    except Exception:
        _LOG.exception("background security task failed")
