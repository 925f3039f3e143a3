"""SMTP session with one sending server, based on aiosmtpd: recipients, reception of messages, and replies."""

import asyncio
import logging
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from aiosmtpd.smtp import SMTP, syntax

from domain.kernel.concurrency import ConcurrencyLimit
from domain.kernel.errors import DomainError, Unavailable
from domain.mail.model import MAX_BYTES_PER_MESSAGE, Envelope, MessageReason
from domain.mail.ports import Recipient
from domain.mail.usecases.intake import MessageIntake, create_malformed_refusal, create_size_refusal
from domain.mail.usecases.verdicts import MailDisposition, MessageVerdict
from entrypoints.mail.peers import (
    MIB,
    XFORWARD_ATTRIBUTES,
    ConnectionLimits,
    OriginalClient,
    apply_xforward,
    normalise_address,
)
from entrypoints.mail.settings import Certificate
from ports.limits import RateLimitBucket, RateLimits

MAX_PAUSE_SECONDS = 60.0
"""Maximum seconds between two parts of a message."""
_LINE_END = b"\r\n"
_END = b"\r\n.\r\n"
_ESCAPED_DOT = b"\r\n."
_INVALID_LINE_END = re.compile(rb"(?<!\r)\n|\r[^\n]")
_MAX_READ = 16 * MIB
"""Number of bytes to read at once; more than the reader's buffer ever contains."""
MAX_LINE_BYTES = 64 * 1024
"""Maximum bytes of a line of a message or command."""
HEAD_BYTES = 64 * 1024
"""Number of bytes at the beginning of a refused message from which the sender is determined."""


class InvalidLineEnd(Exception):
    """A line of a message ends in a lone CR or LF, where other servers may find the end of the message (SMTP smuggling).

    `head` is the beginning of the message.
    """

    def __init__(self, head: bytes) -> None:
        super().__init__("A line of the message does not end in CR LF.")
        self.head = head


@dataclass(slots=True)
class ReceivedMessage:
    """Message that is being received. If it must be refused, `body` contains only its beginning.

    Attributes:
        body: The text of the message received so far.
        is_too_large: Whether the message exceeds the size limit.
        is_memory_full: Whether the memory for messages is exhausted.
        has_long_line: Whether a line of the message is too long.
        reserved_bytes: Number of bytes that are reserved for the message in the memory for messages.
    """

    body: bytearray = field(default_factory=bytearray)
    is_too_large: bool = False
    is_memory_full: bool = False
    has_long_line: bool = False
    reserved_bytes: int = 0

    @property
    def is_complete(self) -> bool:
        """True if `body` contains all text received so far, because no limit was exceeded."""
        return not (self.is_too_large or self.is_memory_full or self.has_long_line)


class MessageReceiver:
    """Reader of the text of one message, as sent after the command DATA."""

    # The text is processed in chunks of whole lines, so that no end of message, invalid line end or doubled dot is split
    # between two chunks.

    def __init__(self, reader: asyncio.StreamReader, peers: ConnectionLimits) -> None:
        self._reader, self._peers = reader, peers
        self.received = ReceivedMessage()
        self._discarded_bytes = 0

    async def receive(self) -> ReceivedMessage:
        """Read the message up to the line that consists of a single dot.

        Raises:
            InvalidLineEnd: A line does not end in CR LF.
            TimeoutError: The sender paused for too long.
            ConnectionResetError: The connection ended, or more than twice MAX_BYTES_PER_MESSAGE were discarded.
        """
        open_line = _LINE_END
        while True:
            text = open_line + await self._read_available()
            search_start = max(0, len(open_line) - len(_END))  # avoids searching a line again for each byte
            end = text.find(_END, search_start)
            if invalid_end := _INVALID_LINE_END.search(
                text, search_start, end + len(_LINE_END) if end >= 0 else len(text)
            ):
                self._append_chunk(text[: invalid_end.start()])
                raise InvalidLineEnd(bytes(self.received.body[len(_LINE_END) : HEAD_BYTES]))
            if end >= 0:
                self._append_chunk(text[: end + len(_LINE_END)])
                if not self._reader.at_eof():
                    self._reader.feed_data(text[end + len(_END) :])
                del self.received.body[: len(_LINE_END)]
                return self.received
            cut = max(0, text.rfind(_LINE_END, search_start))
            self._append_chunk(text[:cut])
            open_line = self._limit_open_line(text[cut:])

    def release_memory(self) -> None:
        """Release the bytes that are reserved for the message in the memory for messages."""
        self._peers.message_bytes.release("", self.received.reserved_bytes)
        self.received.reserved_bytes = 0

    async def _read_available(self) -> bytes:
        """Wait for data and return all that is available."""
        # All data is read, so that `receive` can put back what follows the message.
        async with asyncio.timeout(MAX_PAUSE_SECONDS):
            data = await self._reader.read(_MAX_READ)
        if not data:
            raise ConnectionResetError
        return data

    def _limit_open_line(self, open_line: bytes) -> bytes:
        """Return the incomplete line at the end of the text, shortened if it is longer than MAX_LINE_BYTES.

        A shortened line keeps its last bytes, because they may be part of the end of the message.
        """
        if len(open_line) <= MAX_LINE_BYTES:
            return open_line
        self.received.has_long_line = True
        self._count_discarded(len(open_line))
        return _LINE_END + b"x" + open_line[-len(_END) :]

    def _append_chunk(self, chunk: bytes) -> None:
        received = self.received
        if _has_long_line(chunk):
            received.has_long_line = True
        if not received.is_complete:
            self._count_discarded(len(chunk))
            return
        unescaped = chunk.replace(_ESCAPED_DOT, _LINE_END)
        if len(received.body) + len(unescaped) > MAX_BYTES_PER_MESSAGE + len(_LINE_END):
            received.is_too_large = True
        elif not self._reserve(len(received.body) + len(unescaped)):
            received.is_memory_full = True
        received.body += unescaped
        if not received.is_complete:
            del received.body[HEAD_BYTES:]

    def _reserve(self, size: int) -> bool:
        """Increase the reserved memory to at least `size` bytes, in steps of 1 MiB.

        Return False if the limit is reached.
        """
        while self.received.reserved_bytes < size:
            try:
                self._peers.message_bytes.acquire("", MIB)
            except DomainError:
                return False
            self.received.reserved_bytes += MIB
        return True

    def _count_discarded(self, size: int) -> None:
        """Count `size` discarded bytes; raise ConnectionResetError above twice MAX_BYTES_PER_MESSAGE."""
        # A refused message is read to its end, so that the sender reads the reply.
        self._discarded_bytes += size
        if self._discarded_bytes > 2 * MAX_BYTES_PER_MESSAGE:
            raise ConnectionResetError("refused message is more than twice as large as permitted")


def _has_long_line(chunk: bytes) -> bool:
    start = 0
    while start + MAX_LINE_BYTES < len(chunk):
        end = chunk.rfind(b"\n", start, start + MAX_LINE_BYTES + 1)
        if end < 0:
            return True
        start = end + 1
    return False


UNKNOWN_ADDRESS = "550 5.1.1 No such address here"
ONE_AT_A_TIME = "452 4.5.3 Only one recipient per message; send the message separately to each other recipient"
RATE_LIMITED = "451 4.7.1 Too many messages for this address; try again later"
UNAVAILABLE = "451 4.3.0 Temporarily unavailable; try again later"
MEMORY_FULL = "452 4.3.1 Too much mail at once; try again later"

_REFUSED_CODES: Final[Mapping[MessageReason, str]] = {
    MessageReason.TOO_LARGE: "552 5.3.4",
    MessageReason.MALFORMED: "550 5.6.0",
    MessageReason.DMARC_REJECTED: "550 5.7.26",
    MessageReason.SOURCE_NOT_ACTIVE: "550 5.2.1",
    MessageReason.TOO_MANY_FILES: "550 5.3.4",
}
_LATER_CODES: Final[Mapping[MessageReason, str]] = {
    MessageReason.QUOTA_EXCEEDED: "452 4.2.2",
    MessageReason.SOURCE_NOT_ACTIVE: "450 4.2.1",
    MessageReason.NOT_CHECKED: "451 4.7.0",
}
_UNPRINTABLE = re.compile(r"[^\x20-\x7e]")
_LONGEST = 400


def format_reply(verdict: MessageVerdict) -> str:
    """Return the SMTP reply to a message: code, enhanced code, and the text of the verdict."""
    if verdict.disposition == MailDisposition.TAKEN:
        return f"250 2.0.0 {_to_ascii_line(verdict.reply_text)}"
    if verdict.reason is None:
        return UNKNOWN_ADDRESS
    codes, default_code = (
        (_LATER_CODES, "451 4.3.0") if verdict.disposition == MailDisposition.LATER else (_REFUSED_CODES, "550 5.7.1")
    )
    return f"{codes.get(verdict.reason, default_code)} {_to_ascii_line(verdict.reply_text)}"


def _to_ascii_line(text: str) -> str:
    """Return the text as one line of printable ASCII characters, shortened if necessary."""
    return _UNPRINTABLE.sub("?", text)[:_LONGEST]


LOG = logging.getLogger("joinery.mail")
MAX_COMMAND_SECONDS = 120.0
"""Maximum seconds between two commands."""
MAX_MESSAGE_SECONDS = 600.0
"""Maximum seconds from the command DATA to the reply to the message."""
_COMMANDS = {"*": 200, "RCPT": 400}
_MAX_UNKNOWN_RECIPIENTS = 5
"""Number of unknown recipients after which the connection is closed."""
_COMMAND_BYTES = 512
_NOT_OFFERED = ("AUTH", "HELP", "EXPN", "VRFY")


@dataclass(frozen=True, slots=True)
class MailServerState:
    """State that all SMTP connections share.

    Attributes:
        intake: The use cases that accept or refuse messages.
        rate_limits: The rate limits.
        connection_limits: The limits of connections, and of bytes in memory.
        processing_limit: The limit of messages that are processed concurrently.
        hostname: The server's name in replies.
        messages_per_minute: Messages per minute that one inbound address may receive.
        certificate: The certificate for STARTTLS.
    """

    intake: MessageIntake
    rate_limits: RateLimits
    connection_limits: ConnectionLimits
    processing_limit: ConcurrencyLimit
    hostname: str
    messages_per_minute: int
    certificate: Certificate | None = None


def _replace_unstorable(text: str) -> str:
    """Return the text with a question mark in place of each lone surrogate and unprintable character."""
    encodable = text.encode("utf-8", "replace").decode()
    return "".join(letter if letter.isprintable() else "?" for letter in encodable)


class MailSession(SMTP):
    """SMTP session of one connection. Each message has one recipient."""

    # One source may accept a message that another refuses, but there is only one reply.

    line_length_limit = MAX_LINE_BYTES

    def __init__(self, state: MailServerState) -> None:
        self.command_size_limits = defaultdict(lambda: _COMMAND_BYTES)
        super().__init__(
            self,
            data_size_limit=MAX_BYTES_PER_MESSAGE,
            enable_SMTPUTF8=True,
            hostname=state.hostname,
            ident="Joinery",
            tls_context=state.certificate.context if state.certificate else None,
            timeout=MAX_COMMAND_SECONDS,
            command_call_limit=_COMMANDS,
            loop=asyncio.get_running_loop(),
        )
        for command in _NOT_OFFERED:
            self._smtp_methods.pop(command, None)
        self._state = state
        self._counted_address: str | None = None
        self._recipient: Recipient | None = None
        self._original_client = OriginalClient()
        self._unknown_recipient_count = 0
        self.all_replied = asyncio.Event()
        """Set unless a completely received message waits for its reply."""
        self.all_replied.set()

    def connection_made(self, transport: Any) -> None:
        """Count and greet a new connection, or close it if a limit is reached; also called after the upgrade to TLS."""
        peer = transport.get_extra_info("peername")
        address = normalise_address(str(peer[0])) if peer else ""
        if self._counted_address is None:
            if rejection := self._state.connection_limits.add_connection(address):
                transport.write(f"421 4.7.0 {self._state.hostname} {rejection}\r\n".encode())
                transport.close()
                return
            self._counted_address = address
        self._original_client = OriginalClient()
        super().connection_made(transport)

    def connection_lost(self, error: Exception | None) -> None:
        """Release the counted connection when it ends."""
        if self._counted_address is None:
            return
        if self.transport is not None:
            self._state.connection_limits.connections.release(self._counted_address)
            super().connection_lost(error)

    def data_received(self, data: bytes) -> None:
        """Process received data; the data of a rejected connection is ignored."""
        if self._counted_address is not None:
            super().data_received(data)

    def eof_received(self) -> bool | None:
        """Process the end of the input; that of a rejected connection is ignored."""
        return None if self._counted_address is None else super().eof_received()

    def _set_post_data_state(self) -> None:
        super()._set_post_data_state()  # type: ignore[no-untyped-call]  # the library's
        self._recipient = None

    async def handle_EHLO(  # noqa: N802  the library's names for its hooks
        self, _server: Any, session: Any, _envelope: Any, hostname: str, responses: list[str]
    ) -> list[str]:
        """Respond to EHLO with the supported extensions; XFORWARD is offered to the operator's relays only."""
        session.host_name = hostname
        extensions = [line for line in responses if not line[4:].startswith(_NOT_OFFERED)]
        extensions += ["250-PIPELINING", "250-ENHANCEDSTATUSCODES"]
        if self._is_relay():
            extensions.append(f"250-XFORWARD {' '.join(XFORWARD_ATTRIBUTES)}")
        return [*extensions[:-1], f"250 {extensions[-1][4:]}"]

    async def handle_RCPT(  # noqa: N802  the same
        self, _server: Any, _session: Any, envelope: Any, address: str, options: list[str]
    ) -> str:
        """Respond to RCPT: accept the recipient if the address is the inbound address of a source."""
        if self._recipient is not None:
            return ONE_AT_A_TIME
        try:
            recipient = await self._state.intake.find_recipient(address.lower()) if address.isascii() else None
        except Unavailable:
            return UNAVAILABLE
        if recipient is None:
            self._unknown_recipient_count += 1
            if self._unknown_recipient_count >= _MAX_UNKNOWN_RECIPIENTS and not self._is_relay():
                self.loop.call_soon(self._close_connection)
            return UNKNOWN_ADDRESS
        each = self._state.messages_per_minute
        if not (
            await self._state.rate_limits.take_token(RateLimitBucket(f"mail:{recipient.source}", each, each / 60))
        ).allowed:
            return RATE_LIMITED
        self._recipient = recipient
        envelope.rcpt_tos.append(address)
        envelope.rcpt_options.extend(options)
        return "250 2.1.5 OK"

    async def handle_exception(self, error: Exception) -> str:
        """Log an unexpected error; return the reply for a temporary failure."""
        if not isinstance(error, DomainError):
            LOG.error("SMTP session failed", exc_info=error)
        return UNAVAILABLE

    @syntax("XFORWARD attribute=value…")
    async def smtp_XFORWARD(self, arg: str | None) -> None:  # noqa: N802  the library finds commands by this
        """Respond to XFORWARD: store the original client that one of the operator's mail relays reports."""
        if not self._is_relay():
            await self.push("550 5.7.1 XFORWARD not permitted")
            return
        client = apply_xforward(arg or "", self._original_client)
        if client is None:
            await self.push("501 5.5.4 Syntax: XFORWARD attribute=value…")
            return
        self._original_client = client
        await self.push("250 2.0.0 OK")

    async def smtp_DATA(self, arg: str | None) -> None:  # noqa: N802  the same
        """Respond to DATA: receive and process a message, and reply after the result is committed."""
        assert self.envelope is not None
        assert self.session is not None
        recipient, return_path = self._recipient, self.envelope.mail_from or ""
        if arg:
            await self.push("501 5.5.4 Syntax: DATA")
            return
        if recipient is None or not self.session.host_name:
            await self.push("503 5.5.1 Error: need RCPT command")
            return
        self._reset_timeout(MAX_MESSAGE_SECONDS)
        await self.push("354 End data with <CR><LF>.<CR><LF>")
        envelope = self._build_envelope(return_path)
        receiver = MessageReceiver(self._reader, self._state.connection_limits)
        try:
            reply = await self._receive_and_process(recipient, envelope, receiver)
        finally:
            receiver.release_memory()
            self.all_replied.set()
        self._set_post_data_state()
        self._original_client = OriginalClient()
        self._reset_timeout()
        await self.push(reply)
        if reply.startswith(("421", "521")):
            raise asyncio.CancelledError  # ends the session, so that buffered data is never read as commands

    async def _receive_and_process(self, recipient: Recipient, envelope: Envelope, receiver: MessageReceiver) -> str:
        intake = self._state.intake
        try:
            received = await receiver.receive()
        except InvalidLineEnd as smuggled:
            try:
                await intake.record_refusal(recipient, envelope, smuggled.head, create_malformed_refusal(str(smuggled)))
            except Exception:  # the connection is closed even if the refusal is not recorded
                LOG.exception("refusal of a malformed message not recorded")
            return f"521 5.5.2 {smuggled} Goodbye"
        except ConnectionResetError:
            raise asyncio.CancelledError from None
        except TimeoutError:
            return "421 4.4.2 Timeout while reading the message. Goodbye"
        self.all_replied.clear()
        if not received.is_complete:
            return await self._refuse_incomplete(recipient, envelope, received)
        async with self._state.processing_limit.slot(recipient.tenant.org):
            raw = bytes(received.body)
            received.body.clear()
            return format_reply(await intake.accept_or_refuse(recipient, envelope, raw))

    async def _refuse_incomplete(self, recipient: Recipient, envelope: Envelope, received: ReceivedMessage) -> str:
        if received.is_memory_full:
            return MEMORY_FULL
        refused = (
            create_size_refusal()
            if received.is_too_large
            else create_malformed_refusal(f"A line has more than {MAX_LINE_BYTES} bytes.")
        )
        return format_reply(await self._state.intake.record_refusal(recipient, envelope, bytes(received.body), refused))

    def _build_envelope(self, return_path: str) -> Envelope:
        assert self.session is not None
        return Envelope(
            sender="" if return_path in ("<>", "") else _replace_unstorable(return_path),
            peer=self._original_client.peer or self._counted_address or "",
            helo=_replace_unstorable(self._original_client.helo or self.session.host_name or ""),
        )

    def _is_relay(self) -> bool:
        return self._counted_address is not None and self._state.connection_limits.is_relay(self._counted_address)

    def _close_connection(self) -> None:
        if self.transport is not None:
            self.transport.close()
