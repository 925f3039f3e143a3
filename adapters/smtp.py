"""Mail over SMTP, one connection per message, so that no message waits for another."""

from dataclasses import dataclass, field
from email.message import EmailMessage
from email.utils import format_datetime

import aiosmtplib

from domain.outbox.ports import Letter, MailRefused, MailUnsent
from ports.clock import Clock

TIMEOUT = 20.0
_REFUSED = (aiosmtplib.SMTPDataError, aiosmtplib.SMTPRecipientRefused, aiosmtplib.SMTPSenderRefused)


@dataclass(frozen=True, slots=True)
class Relay:
    """Mail server: TLS from the first byte (`implicit_tls`) or by STARTTLS before anything is sent (`start_tls`)."""

    host: str
    port: int
    sender: str
    implicit_tls: bool
    start_tls: bool
    user: str | None = None
    password: str | None = field(default=None, repr=False)


class SmtpMailer:
    """Mailer (domain/outbox/ports.py) over SMTP."""

    def __init__(self, relay: Relay, clock: Clock) -> None:
        self._relay, self._clock = relay, clock

    async def send(self, letter: Letter) -> None:
        relay = self._relay
        try:
            await aiosmtplib.send(
                self._message(letter),
                hostname=relay.host,
                port=relay.port,
                username=relay.user,
                password=relay.password,
                use_tls=relay.implicit_tls,
                start_tls=relay.start_tls,
                timeout=TIMEOUT,
            )
        except aiosmtplib.SMTPRecipientsRefused as error:
            raise _unsent(error.recipients[0]) from error
        except aiosmtplib.SMTPResponseException as error:
            raise _unsent(error) from error
        except (aiosmtplib.SMTPException, OSError) as error:
            raise MailUnsent(f"The mail server cannot be reached ({type(error).__name__}).") from error
        except ValueError as error:
            raise MailRefused("The address or the subject is not valid in a message.") from error

    def _message(self, letter: Letter) -> EmailMessage:
        message = EmailMessage()
        message["From"], message["To"], message["Subject"] = self._relay.sender, letter.to, letter.subject
        message["Date"] = format_datetime(self._clock.now())
        message["Message-ID"] = f"<{letter.id}@{self._relay.sender.rpartition('@')[2].strip('>')}>"
        message["Auto-Submitted"] = "auto-generated"
        message.set_content(letter.text)
        return message


def _unsent(error: aiosmtplib.SMTPResponseException) -> MailUnsent:
    """Return the error for a response; only a refusal of the message itself, not of the client, is permanent."""
    permanent = isinstance(error, _REFUSED) and 500 <= error.code < 600
    return (MailRefused if permanent else MailUnsent)(f"The mail server answered {error.code}.")
