"""Storage of outgoing mail (domain/outbox/ports.py) and its sending (domain/outbox/usecases)."""

from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest

from adapters.aesgcm import AesGcmVault
from domain.outbox.model import OutgoingMessage
from domain.outbox.ports import MailMessage, MailRefused, MailUnsent
from domain.outbox.usecases import OutgoingMail
from tests.support.backend import Backend
from tests.support.memory.clock import SettableClock

pytestmark = pytest.mark.asyncio
VAULT = AesGcmVault("a secret of at least thirty-two characters")
LINK = "https://joinery.test/console/link/svc_link_x"


@dataclass
class FakeMailer:
    """Mailer that records messages or raises the configured failure."""

    failure: Exception | None = None
    sent: list[MailMessage] = field(default_factory=list)

    async def send(self, message: MailMessage) -> None:
        if self.failure is not None:
            raise self.failure
        self.sent.append(message)

    def list_sent(self, message: OutgoingMessage) -> list[MailMessage]:
        return [letter for letter in self.sent if letter.id == message.id]


@dataclass
class OutboxHarness:
    """Outbox with a mailer and a clock of the test."""

    backend: Backend
    clock: SettableClock
    mailer: FakeMailer
    mail: OutgoingMail

    async def load_message(self, message: OutgoingMessage) -> OutgoingMessage:
        (found,) = (one for one in await self.mail.list_latest(1000) if one.id == message.id)
        return found

    async def send_after(self, by: timedelta) -> OutgoingMail:
        """Advance the clock and send the due messages."""
        self.clock.advance(by)
        await self.mail.send_due()
        return self.mail


@pytest.fixture
def harness(backend: Backend) -> OutboxHarness:
    clock, post = SettableClock(), FakeMailer()
    clock.set(backend.now().replace(microsecond=0))
    return OutboxHarness(backend, clock, post, OutgoingMail(backend.outbox, VAULT, clock, post))


async def test_a_message_is_encrypted_sent_once_and_emptied(harness: OutboxHarness) -> None:
    message = await harness.mail.add_message("ingrid@fjord.example", "Set\r\nBcc: all", LINK, "set_password")
    kept = await harness.load_message(message)
    assert kept == message and b"svc_link" not in kept.sealed and harness.mail.decrypt_text(kept) == LINK
    await harness.mail.send_due()
    await harness.mail.send_due()
    assert harness.mailer.list_sent(message) == [MailMessage(message.id, "ingrid@fjord.example", "Set Bcc: all", LINK)]
    sent = await harness.load_message(message)
    assert sent == replace(message, sealed=b"", next_at=None, attempts=1, sent_at=harness.clock.now())
    assert harness.mail.decrypt_text(sent) == ""


async def test_sending_is_retried_with_increasing_delays(harness: OutboxHarness) -> None:
    message = await harness.mail.add_message("ingrid@fjord.example", "A", "B", "invitation")
    harness.mailer.failure = MailUnsent("The mail server returned 451.")
    pauses = []
    for _ in range(3):
        await harness.mail.send_due()
        failed = await harness.load_message(message)
        assert failed.next_at is not None and failed.failure == "The mail server returned 451." and failed.sealed
        pauses.append((failed.next_at - harness.clock.now()).total_seconds())
        harness.clock.set(failed.next_at)
    assert pauses == [30, 60, 120]
    harness.mailer.failure = None
    await harness.send_after(timedelta(0))
    assert len(harness.mailer.list_sent(message)) == 1 and (await harness.load_message(message)).failure == ""


async def test_refused_and_expired_messages_are_given_up(harness: OutboxHarness) -> None:
    refused = await harness.mail.add_message("nobody@fjord.example", "A", "B", "invitation")
    harness.mailer.failure = MailRefused("The mail server returned 550.")
    await harness.mail.send_due()
    harness.mailer.failure = None
    late = await harness.mail.add_message("ingrid@fjord.example", "A", "B", "invitation")
    await harness.send_after(timedelta(days=3, seconds=1))
    assert harness.mailer.list_sent(refused) == harness.mailer.list_sent(late) == []
    given_up = await harness.load_message(refused)
    assert given_up.next_at is None and given_up.sent_at is None and given_up.failure == "The mail server returned 550."


async def test_a_message_is_claimed_by_one_sender(harness: OutboxHarness) -> None:
    message, now = await harness.mail.add_message("a@fjord.example", "A", "B", "invitation"), harness.clock.now()
    outbox, until, early = harness.backend.outbox, now + timedelta(minutes=5), now - timedelta(days=1)
    first = [one.id for one in await outbox.claim_due(now, until, early, 1000)]
    second = [one.id for one in await outbox.claim_due(now, until, early, 1000)]
    assert first.count(message.id) == 1 and message.id not in second, (
        "a message claimed by a killed sender is released after a while"
    )
    assert message.id in [one.id for one in await outbox.claim_due(until, until, early, 1000)]


async def test_a_message_stays_in_the_outbox_without_a_mail_server(harness: OutboxHarness) -> None:
    mail = OutgoingMail(harness.backend.outbox, VAULT, harness.clock)
    message = await mail.add_message("ingrid@fjord.example", "A", LINK, "set_password")
    assert await mail.send_due() == 0 and not mail.sends_messages
    assert (await mail.list_latest(1))[0].id >= message.id and mail.decrypt_text(
        await harness.load_message(message)
    ) == LINK
    assert await mail.delete_created_before(harness.clock.now()) >= 0
    assert await harness.load_message(message) == message
    assert await mail.delete_created_before(harness.clock.now() + timedelta(seconds=1)) >= 1
