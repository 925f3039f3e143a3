"""Mail over SMTP, one connection per message, so that no message waits for another."""

from dataclasses import dataclass, field
from email.message import EmailMessage
from email.policy import Policy
from email.utils import format_datetime

import aiosmtplib

from domain.outbox.ports import MailMessage, MailRefused, MailUnsent
from ports.clock import Clock

TIMEOUT_SECONDS = 20.0
_REFUSAL_ERRORS = (aiosmtplib.SMTPDataError, aiosmtplib.SMTPRecipientRefused, aiosmtplib.SMTPSenderRefused)


@dataclass(frozen=True, slots=True)
class MailServer:
    """Mail server, and the login there.

    Attributes:
        host: The host name.
        port: The port.
        sender: The address from which mail is sent.
        uses_implicit_tls: Whether the connection uses TLS from the first byte.
        requires_start_tls: Whether STARTTLS must enable TLS before mail is sent.
        user: The user name, or None.
        password: The password, or None.
    """

    host: str
    port: int
    sender: str
    uses_implicit_tls: bool
    requires_start_tls: bool
    user: str | None = None
    password: str | None = field(default=None, repr=False)


class _UnsubscribeHeader(str):
    """Value of List-Unsubscribe that is written on one line: folding would encode a long URL, which mail programs do not decode."""

    __slots__ = ()
    name = "List-Unsubscribe"

    def fold(self, *, policy: Policy) -> str:
        """Return the header; the generator of `email` calls this method."""
        return f"{self.name}: {self}{policy.linesep}"


class SmtpMailer:
    """Sending of mail by SMTP (port Mailer in domain/outbox/ports.py)."""

    def __init__(self, server: MailServer, clock: Clock) -> None:
        self._relay, self._clock = server, clock

    async def send(self, message: MailMessage) -> None:
        relay = self._relay
        try:
            await aiosmtplib.send(
                self._build_email(message),
                hostname=relay.host,
                port=relay.port,
                username=relay.user,
                password=relay.password,
                use_tls=relay.uses_implicit_tls,
                start_tls=relay.requires_start_tls,
                timeout=TIMEOUT_SECONDS,
            )
        except aiosmtplib.SMTPRecipientsRefused as error:
            raise _build_error(error.recipients[0]) from error
        except aiosmtplib.SMTPResponseException as error:
            raise _build_error(error) from error
        except (aiosmtplib.SMTPException, OSError) as error:
            raise MailUnsent(f"The mail server is unavailable ({type(error).__name__}).") from error
        except ValueError as error:
            raise MailRefused("The recipient's address or the subject of the message is invalid.") from error

    def _build_email(self, message: MailMessage) -> EmailMessage:
        """Build the email with its headers."""
        email = EmailMessage()
        email["From"], email["To"], email["Subject"] = self._relay.sender, message.to, message.subject
        email["Date"] = format_datetime(self._clock.now())
        email["Message-ID"] = f"<{message.id}@{self._relay.sender.rpartition('@')[2].strip('>')}>"
        email["Auto-Submitted"] = "auto-generated"
        if message.unsubscribe_url:
            email["List-Unsubscribe"] = _UnsubscribeHeader(f"<{message.unsubscribe_url}>")
            email["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
        email.set_content(message.text)
        return email


def _build_error(error: aiosmtplib.SMTPResponseException) -> MailUnsent:
    """Return the error for a response of the mail server: MailRefused if it refused the message permanently, else MailUnsent."""
    permanent = isinstance(error, _REFUSAL_ERRORS) and 500 <= error.code < 600
    return (MailRefused if permanent else MailUnsent)(f"The mail server returned {error.code}.")
