"""Use cases of outgoing mail: adding messages to the outbox, and sending them with retries."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from domain.kernel.ids import new_id
from domain.outbox.model import CLAIM_TIME, MAX_AGE, MAX_FAILURE_CHARS, OutgoingMessage, compute_retry_delay, join_lines
from domain.outbox.ports import Mailer, MailMessage, MailRefused, MailUnsent, Outbox
from domain.secrets.ports import Vault
from ports.clock import Clock

BATCH_SIZE = 20
"""Maximum number of messages that are sent at a time."""
_LOG = logging.getLogger("joinery.outbox")


@dataclass(frozen=True, slots=True)
class OutgoingMail:
    """Use cases of outgoing mail.

    Attributes:
        mailer: Client of the mail server; None if messages remain in the outbox for the operator.
    """

    outbox: Outbox
    vault: Vault
    clock: Clock
    mailer: Mailer | None = None

    @property
    def sends_messages(self) -> bool:
        """True if messages are sent by a mail server; False if they remain in the outbox for the operator."""
        return self.mailer is not None

    async def add_message(
        self, to: str, subject: str, body: str, purpose: str, *, id: str = "", unsubscribe_url: str = ""
    ) -> OutgoingMessage:
        """Add a plain-text message to the outbox and return it.

        Args:
            to: The address.
            subject: The subject.
            body: The text.
            purpose: A word such as `set_password`.
            id: ID of the message, by which a repeated call adds nothing; empty for a new ID.
            unsubscribe_url: URL that stops further messages by a POST (RFC 8058); empty if there is none.
        """
        id_, now = id or new_id("mail"), self.clock.now()
        sealed = self.vault.encrypt({"body": body, "unsubscribe_url": unsubscribe_url}, id_)
        message = OutgoingMessage(id_, join_lines(to), join_lines(subject), purpose, sealed, now, now)
        await self.outbox.add(message)
        return message

    async def list_latest(self, limit: int = 50) -> Sequence[OutgoingMessage]:
        """Return up to `limit` messages, newest first."""
        return await self.outbox.list_latest(limit)

    def decrypt_text(self, message: OutgoingMessage) -> str:
        """Return the decrypted text of the message; empty after the message was sent."""
        if not message.sealed:
            return ""
        return str(self.vault.decrypt(message.sealed, message.id)["body"])

    def _build_mail(self, message: OutgoingMessage) -> MailMessage:
        """Return the decrypted message. Raises ValueError if it cannot be decrypted."""
        content = self.vault.decrypt(message.sealed, message.id)
        return MailMessage(message.id, message.to, message.subject, content["body"], content.get("unsubscribe_url", ""))

    async def send_due(self) -> int:
        """Send the messages that are due; return how many were sent."""
        if self.mailer is None:
            return 0
        sent = 0
        now = self.clock.now()
        for message in await self.outbox.claim_due(now, now + CLAIM_TIME, now - MAX_AGE, BATCH_SIZE):
            sent += await self._send(self.mailer, message)
        return sent

    async def delete_created_before(self, before: datetime) -> int:
        """Delete messages created before `before`; return their number."""
        return await self.outbox.delete_created_before(before)

    async def _send(self, mailer: Mailer, message: OutgoingMessage) -> bool:
        """Send a message and record the result; return whether the server accepted it."""
        try:
            await mailer.send(self._build_mail(message))
        except (MailUnsent, ValueError) as error:
            is_final = isinstance(error, MailRefused | ValueError)
            next_at = None if is_final else self.clock.now() + compute_retry_delay(message.attempts)
            failure = "The text of the message cannot be decrypted." if isinstance(error, ValueError) else str(error)
            _LOG.warning("message %s was not sent (attempt %d): %s", message.id, message.attempts, failure)
            await self.outbox.record_failure(message.id, failure[:MAX_FAILURE_CHARS], next_at)
            return False
        await self.outbox.record_sent(message.id, self.clock.now())
        return True
