"""Sending of mail: use cases add messages to the outbox; the leading scheduler sends them with retries."""

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
    """The outbox. Without a `mailer` messages remain in it for the operator to read."""

    outbox: Outbox
    vault: Vault
    clock: Clock
    mailer: Mailer | None = None

    @property
    def sends(self) -> bool:
        """True if messages are sent, or remain for the operator."""
        return self.mailer is not None

    async def queue(self, to: str, subject: str, body: str, purpose: str) -> OutgoingMessage:
        """Queue a message. `body` is plain text; `purpose` a word such as `set_password`."""
        id_, now = new_id("mail"), self.clock.now()
        sealed = self.vault.seal({"body": body}, id_)
        message = OutgoingMessage(id_, one_line(to), one_line(subject), purpose, sealed, now, now)
        await self.outbox.add(message)
        return message

    async def latest(self, limit: int = 50) -> Sequence[OutgoingMessage]:
        """Return the newest messages first."""
        return await self.outbox.latest(limit)

    def text(self, message: OutgoingMessage) -> str:
        """Return the message's text; empty once it was sent."""
        if not message.sealed:
            return ""
        return str(self.vault.open(message.sealed, message.id)["body"])

    async def send_due(self) -> int:
        """Send due messages; return the number sent."""
        if self.mailer is None:
            return 0
        sent = 0
        now = self.clock.now()
        for message in await self.outbox.claim(now, now + LEASE, now - GIVEN_UP_AFTER, BATCH):
            sent += await self._send(self.mailer, message)
        return sent

    async def forget(self, before: datetime) -> int:
        """Delete messages created before then; return their number."""
        return await self.outbox.forget(before)

    async def _send(self, mailer: Mailer, message: OutgoingMessage) -> bool:
        """Send a message and record the outcome; return whether it was accepted."""
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
