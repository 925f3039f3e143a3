"""Security notices: stored in the user's account, and mailed if they are urgent."""

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from domain.kernel.ids import new_id
from domain.kernel.names import displayable_name, extract_product_names
from domain.outbox.usecases import OutgoingMail
from domain.people.model import MAX_USER_AGENT_CHARS, SecurityEvent, User
from domain.people.ports import People
from domain.people.usecases.sessions import ClientInfo
from ports.clock import Clock

MAILED_NOTICES: Final[Mapping[str, tuple[str, str]]] = {
    "new_device": (
        "New sign-in to Joinery",
        "Someone signed in to your account from a new browser.",
    ),
    "password_changed": ("Your Joinery password was changed", "The password of your account was changed."),
    "authenticator_added": ("One-time codes are on", "Your account now asks for a one-time code at sign-in."),
    "authenticator_removed": ("One-time codes are off", "Your account no longer asks for a one-time code at sign-in."),
    "recovery_code_used": ("A recovery code was used", "Someone signed in to your account with a recovery code."),
    "passkey_added": ("A passkey was added", "Your account has a new passkey."),
    "passkey_removed": ("A passkey was removed", "A passkey of your account was removed."),
}
"""Subject and first sentence of the notices that are also mailed, by kind of security event."""
_FOOTER = (
    "If this was you, no action is needed. If it was not, reset your password ({base}/console/forgot), then revoke "
    "unknown sessions ({base}/console/account)."
)
_LOG = logging.getLogger("joinery.people")


@dataclass(frozen=True, slots=True)
class SecurityNotifier:
    """Service that stores security notices in users' accounts and mails the urgent ones."""

    people: People
    mail: OutgoingMail
    clock: Clock
    base_url: str
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def notify(self, user: User, kind: str, client: ClientInfo, detail: str = "") -> None:
        """Store a security event in the user's account; if its kind is in MAILED_NOTICES, mail a notice as well."""
        now, agent = self.clock.now(), client.user_agent[:MAX_USER_AGENT_CHARS]
        await self.people.record_event(SecurityEvent(new_id("sec"), user.id, kind, detail, client.address, agent, now))
        if kind in MAILED_NOTICES:
            subject, sentence = MAILED_NOTICES[kind]
            facts = (
                f"When: {now:%d %B %Y %H:%M} UTC\nFrom: {client.address or 'unknown'}\nBrowser: "
                f"{extract_product_names(agent) or 'unknown'}"
            )
            body = f"Hello {displayable_name(user.display_name, 'there')},\n\n{sentence}\n\n{facts}\n\n{_FOOTER.format(base=self.base_url)}\n"
            await self.mail.add_message(user.email, subject, body, kind)

    def run_in_background(self, work: Coroutine[Any, Any, None]) -> None:
        """Run the work in the background and log its error, if any."""
        # The duration of a response must not reveal, for example, whether an address has an account.
        task = asyncio.create_task(_run_and_log(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def wait_until_idle(self) -> None:
        """Wait until all background work has ended."""
        while self._tasks:
            await asyncio.gather(*self._tasks)


async def _run_and_log(work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    except Exception:
        _LOG.exception("security notice or password link could not be sent")
