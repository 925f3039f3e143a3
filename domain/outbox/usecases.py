"""Mail to people: whoever writes it puts it into the outbox; the leading scheduler sends it, with patience."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from domain.kernel.ids import new_id
from domain.outbox.model import GIVEN_UP_AFTER, LEASE, LONGEST_FAILURE, OutgoingMessage, one_line, pause
from domain.outbox.ports import Letter, Mailer, MailRefused, MailUnsent, Outbox
from domain.secrets.ports import Vault
from ports.clock import Clock

BATCH = 20
_LOG = logging.getLogger("joinery.outbox")


@dataclass(frozen=True, slots=True)
class OutgoingMail:
    """The outbox. Without a `mailer` messages stay in it, for the operator to read."""

    outbox: Outbox
    vault: Vault
    clock: Clock
    mailer: Mailer | None = None

    @property
    def sends(self) -> bool:
        """Whether messages leave, or stay for the operator to hand over."""
        return self.mailer is not None

    async def queue(self, to: str, subject: str, body: str, purpose: str) -> OutgoingMessage:
        """Keep a message to be sent soon. `body` is plain text; `purpose` a word such as `set_password`."""
        id_, now = new_id("mail"), self.clock.now()
        sealed = self.vault.seal({"body": body}, id_)
        message = OutgoingMessage(id_, one_line(to), one_line(subject), purpose, sealed, now, now)
        await self.outbox.add(message)
        return message

    async def latest(self, limit: int = 50) -> Sequence[OutgoingMessage]:
        """Return the newest messages first."""
        return await self.outbox.latest(limit)

    def text(self, message: OutgoingMessage) -> str:
        """Return the message's text; empty after it was sent."""
        if not message.sealed:
            return ""
        return str(self.vault.open(message.sealed, message.id)["body"])

    async def send_due(self) -> int:
        """Send what is due; answers how many were sent."""
        if self.mailer is None:
            return 0
        sent = 0
        now = self.clock.now()
        for message in await self.outbox.claim(now, now + LEASE, now - GIVEN_UP_AFTER, BATCH):
            sent += await self._sent(self.mailer, message)
        return sent

    async def forget(self, before: datetime) -> int:
        """Delete messages that were written before then; answers how many."""
        return await self.outbox.forget(before)

    async def _sent(self, mailer: Mailer, message: OutgoingMessage) -> bool:
        """Whether it was taken; else it is told why, and when it is tried again."""
        try:
            await mailer.send(Letter(message.id, message.to, message.subject, self.text(message)))
        except (MailUnsent, ValueError) as error:
            final = isinstance(error, MailRefused | ValueError)
            again = None if final else self.clock.now() + pause(message.attempts)
            failure = "Its text cannot be opened." if isinstance(error, ValueError) else str(error)
            _LOG.warning("message %s was not sent (attempt %d): %s", message.id, message.attempts, failure)
            await self.outbox.failed(message.id, failure[:LONGEST_FAILURE], again)
            return False
        await self.outbox.sent(message.id, self.clock.now())
        return True
