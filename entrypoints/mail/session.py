"""SMTP session of one sending server, based on aiosmtpd: addresses, message reception and replies."""

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
from domain.mail.model import LARGEST, Envelope, MessageReason
from domain.mail.ports import Recipient
from domain.mail.usecases.intake import Intake, not_clean, too_large
from domain.mail.usecases.verdicts import Answer, Verdict
from entrypoints.mail.peers import KNOWN, MIB, Forwarded, Peers, forwarded, plain_address
from entrypoints.mail.settings import Certificate
from ports.limits import Budget, Limits

LINE_SECONDS = 60.0
"""Maximum seconds of a pause within a message."""
_LINE_END = b"\r\n"
_END = b"\r\n.\r\n"
_DOTTED = b"\r\n."
_BARE = re.compile(rb"(?<!\r)\n|\r[^\n]")
_MAX_READ = 16 * MIB
"""More than the reader's buffer ever contains."""
LONGEST_LINE = 64 * 1024
HEAD = 64 * 1024
"""Bytes of a refused message that are kept to identify its sender."""


class SmuggledEnd(Exception):
    """A bare line end, which another server could take for the end of the message (SMTP smuggling)."""

    def __init__(self, head: bytes) -> None:
        super().__init__("A line of the message does not end in CR LF.")
        self.head = head


@dataclass(slots=True)
class Received:
    """A message or its beginning: `too_large` for the limit, `no_room` for the bytes in memory."""

    body: bytearray = field(default_factory=bytearray)
    too_large: bool = False
    no_room: bool = False
    long_line: bool = False
    held: int = 0

    @property
    def whole(self) -> bool:
        """True if the message is complete."""
        return not (self.too_large or self.no_room or self.long_line)


class Receiving:
    """Reader of one message's text; `release` returns its reserved bytes.

    The text is processed in pieces that begin with the preceding line end and end at one, so that no end of message, bare
    line end or doubled dot is split.
    """

    def __init__(self, reader: asyncio.StreamReader, peers: Peers) -> None:
        self._reader, self._peers = reader, peers
        self.received = Received()
        self._drained = 0

    async def run(self) -> Received:
        """Read up to the line with a single dot. Raises SmuggledEnd, TimeoutError, or ConnectionResetError if it never ends."""
        open_line = _LINE_END
        while True:
            text = open_line + await self._read_available()
            seen = max(0, len(open_line) - len(_END))  # avoids searching a line again for each byte
            end = text.find(_END, seen)
            if bare := _BARE.search(text, seen, end + len(_LINE_END) if end >= 0 else len(text)):
                self._append(text[: bare.start()])
                raise SmuggledEnd(bytes(self.received.body[len(_LINE_END) : HEAD]))
            if end >= 0:
                self._append(text[: end + len(_LINE_END)])
                if not self._reader.at_eof():
                    self._reader.feed_data(text[end + len(_END) :])
                del self.received.body[: len(_LINE_END)]
                return self.received
            cut = max(0, text.rfind(_LINE_END, seen))
            self._append(text[:cut])
            open_line = self._limit_open_line(text[cut:])

    def release(self) -> None:
        """Return the reserved bytes."""
        self._peers.bytes.release("", self.received.held)
        self.received.held = 0

    async def _read_available(self) -> bytes:
        """Read everything that is buffered, so that what follows the message can be put back."""
        async with asyncio.timeout(LINE_SECONDS):
            piece = await self._reader.read(_MAX_READ)
        if not piece:
            raise ConnectionResetError
        return piece

    def _limit_open_line(self, open_line: bytes) -> bytes:
        """Return the unfinished line; of one that is too long, only the part needed to find its end."""
        if len(open_line) <= LONGEST_LINE:
            return open_line
        self.received.long_line = True
        self._drain(len(open_line))
        return _LINE_END + b"x" + open_line[-len(_END) :]

    def _append(self, piece: bytes) -> None:
        received = self.received
        if _has_long_line(piece):
            received.long_line = True
        if not received.whole:
            self._drain(len(piece))
            return
        plain = piece.replace(_DOTTED, _LINE_END)
        if len(received.body) + len(plain) > LARGEST + len(_LINE_END):
            received.too_large = True
        elif not self._reserve(len(received.body) + len(plain)):
            received.no_room = True
        received.body += plain
        if not received.whole:
            del received.body[HEAD:]

    def _reserve(self, size: int) -> bool:
        """Reserve `size` bytes in steps of 1 MiB; return False if the limit is reached."""
        while self.received.held < size:
            try:
                self._peers.bytes.take("", MIB)
            except DomainError:
                return False
            self.received.held += MIB
        return True

    def _drain(self, bytes: int) -> None:
        """Discard data of a refused message up to a bound, so that the sender reads the reply."""
        self._drained += bytes
        if self._drained > 2 * LARGEST:
            raise ConnectionResetError("the message has no end")


def _has_long_line(piece: bytes) -> bool:
    at = 0
    while at + LONGEST_LINE < len(piece):
        end = piece.rfind(b"\n", at, at + LONGEST_LINE + 1)
        if end < 0:
            return True
        at = end + 1
    return False


UNKNOWN = "550 5.1.1 No such address here"
ONE_AT_A_TIME = "452 4.5.3 One recipient at a time; send the message again for the others"
TOO_OFTEN = "451 4.7.1 Too many messages for this address; try again later"
UNAVAILABLE = "451 4.3.0 Temporarily unavailable; try again later"
NO_ROOM = "452 4.3.1 Too much mail at once; try again later"

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


def reply_to(verdict: Verdict) -> str:
    """Return the SMTP reply to a message."""
    if verdict.answer == Answer.TAKEN:
        return f"250 2.0.0 {_line(verdict.text)}"
    if verdict.reason is None:
        return UNKNOWN
    codes, other = (_LATER_CODES, "451 4.3.0") if verdict.answer == Answer.LATER else (_REFUSED_CODES, "550 5.7.1")
    return f"{codes.get(verdict.reason, other)} {_line(verdict.text)}"


def _line(text: str) -> str:
    """Return the text as one printable ASCII line."""
    return _UNPRINTABLE.sub("?", text)[:_LONGEST]


LOG = logging.getLogger("joinery.mail")
COMMAND_SECONDS = 120.0
MESSAGE_SECONDS = 600.0
"""Maximum seconds of a message from DATA to the reply."""
_COMMANDS = {"*": 200, "RCPT": 400}
_MOST_UNKNOWN = 5
"""Unknown recipients after which the connection is closed."""
_COMMAND_BYTES = 512
_NOT_OFFERED = ("AUTH", "HELP", "EXPN", "VRFY")


@dataclass(frozen=True, slots=True)
class Desk:
    """Shared state of all connections. `each_minute`: messages per address; `taking` limits concurrent processing."""

    intake: Intake
    limits: Limits
    peers: Peers
    taking: ConcurrencyLimit
    hostname: str
    each_minute: int
    certificate: Certificate | None = None


def _storable(text: str) -> str:
    """Return the text with invalid UTF-8 and unprintable characters replaced."""
    whole = text.encode("utf-8", "replace").decode()
    return "".join(letter if letter.isprintable() else "?" for letter in whole)


class MailSession(SMTP):
    """One connection. Each message has one recipient, because one source accepts or refuses it."""

    line_length_limit = LONGEST_LINE

    def __init__(self, desk: Desk) -> None:
        self.command_size_limits = defaultdict(lambda: _COMMAND_BYTES)
        super().__init__(
            self,
            data_size_limit=LARGEST,
            enable_SMTPUTF8=True,
            hostname=desk.hostname,
            ident="Joinery",
            tls_context=desk.certificate.context if desk.certificate else None,
            timeout=COMMAND_SECONDS,
            command_call_limit=_COMMANDS,
            loop=asyncio.get_running_loop(),
        )
        for command in _NOT_OFFERED:
            self._smtp_methods.pop(command, None)
        self._desk = desk
        self._entered: str | None = None
        self._recipient: Recipient | None = None
        self._forwarded = Forwarded()
        self._unknown = 0
        self.answered = asyncio.Event()
        """Set unless a complete message waits for its reply."""
        self.answered.set()

    def connection_made(self, transport: Any) -> None:
        """Handle a new connection, or its upgrade to TLS."""
        peer = transport.get_extra_info("peername")
        address = plain_address(str(peer[0])) if peer else ""
        if self._entered is None:
            if refusal := self._desk.peers.enter(address):
                transport.write(f"421 4.7.0 {self._desk.hostname} {refusal}\r\n".encode())
                transport.close()
                return
            self._entered = address
        self._forwarded = Forwarded()
        super().connection_made(transport)

    def connection_lost(self, error: Exception | None) -> None:
        """Handle the end of the connection."""
        if self._entered is None:
            return
        if self.transport is not None:
            self._desk.peers.connections.release(self._entered)
            super().connection_lost(error)

    def data_received(self, data: bytes) -> None:
        """Receive data; ignored for a rejected connection."""
        if self._entered is not None:
            super().data_received(data)

    def eof_received(self) -> bool | None:
        """Handle the end of input."""
        return None if self._entered is None else super().eof_received()

    def _set_post_data_state(self) -> None:
        super()._set_post_data_state()  # type: ignore[no-untyped-call]  # the library's
        self._recipient = None

    async def handle_EHLO(  # noqa: N802  the library's names for its hooks
        self, _server: Any, session: Any, _envelope: Any, hostname: str, responses: list[str]
    ) -> list[str]:
        """Return the offered extensions: no authentication, and XFORWARD for own relays."""
        session.host_name = hostname
        offered = [line for line in responses if not line[4:].startswith(_NOT_OFFERED)]
        offered += ["250-PIPELINING", "250-ENHANCEDSTATUSCODES"]
        if self._is_relay():
            offered.append(f"250-XFORWARD {' '.join(KNOWN)}")
        return [*offered[:-1], f"250 {offered[-1][4:]}"]

    async def handle_RCPT(  # noqa: N802  the same
        self, _server: Any, _session: Any, envelope: Any, address: str, options: list[str]
    ) -> str:
        """Accept a recipient if a source has the address; the reply reveals nothing about the source."""
        if self._recipient is not None:
            return ONE_AT_A_TIME
        try:
            recipient = await self._desk.intake.find(address.lower()) if address.isascii() else None
        except Unavailable:
            return UNAVAILABLE
        if recipient is None:
            self._unknown += 1
            if self._unknown >= _MOST_UNKNOWN and not self._is_relay():
                self.loop.call_soon(self._hang_up)
            return UNKNOWN
        each = self._desk.each_minute
        if not (await self._desk.limits.take(Budget(f"mail:{recipient.source}", each, each / 60))).allowed:
            return TOO_OFTEN
        self._recipient = recipient
        envelope.rcpt_tos.append(address)
        envelope.rcpt_options.extend(options)
        return "250 2.1.5 OK"

    async def handle_exception(self, error: Exception) -> str:
        """Log an unexpected error; the sender gets a temporary failure."""
        if not isinstance(error, DomainError):
            LOG.error("SMTP session failed", exc_info=error)
        return UNAVAILABLE

    @syntax("XFORWARD attribute=value…")
    async def smtp_XFORWARD(self, arg: str | None) -> None:  # noqa: N802  the library finds commands by this
        """Set the original sender, as reported by an own relay."""
        if not self._is_relay():
            await self.push("550 5.7.1 XFORWARD not permitted")
            return
        recipient = forwarded(arg or "", self._forwarded)
        if recipient is None:
            await self.push("501 5.5.4 Syntax: XFORWARD attribute=value…")
            return
        self._forwarded = recipient
        await self.push("250 2.0.0 OK")

    async def smtp_DATA(self, arg: str | None) -> None:  # noqa: N802  the same
        """Receive a message, process it, and reply once the result is committed."""
        assert self.envelope is not None
        assert self.session is not None
        recipient, sender = self._recipient, self.envelope.mail_from or ""
        if arg:
            await self.push("501 5.5.4 Syntax: DATA")
            return
        if recipient is None or not self.session.host_name:
            await self.push("503 5.5.1 Error: need RCPT command")
            return
        self._reset_timeout(MESSAGE_SECONDS)
        await self.push("354 End data with <CR><LF>.<CR><LF>")
        envelope = self._envelope(sender)
        receiving = Receiving(self._reader, self._desk.peers)
        try:
            reply = await self._receive(recipient, envelope, receiving)
        finally:
            receiving.release()
            self.answered.set()
        self._set_post_data_state()
        self._forwarded = Forwarded()
        self._reset_timeout()
        await self.push(reply)
        if reply.startswith("521"):
            raise asyncio.CancelledError  # ends the session, so that buffered data is never read as commands

    async def _receive(self, recipient: Recipient, envelope: Envelope, receiving: Receiving) -> str:
        intake = self._desk.intake
        try:
            received = await receiving.run()
        except SmuggledEnd as smuggled:
            try:
                await intake.refuse(recipient, envelope, smuggled.head, not_clean(str(smuggled)))
            except Exception:  # the connection is closed even if the refusal is not recorded
                LOG.exception("refusal not recorded")
            return f"521 5.5.2 {smuggled} Goodbye"
        except ConnectionResetError:
            raise asyncio.CancelledError from None
        except TimeoutError:
            return "521 4.4.2 Timeout while reading the message. Goodbye"
        self.answered.clear()
        if not received.whole:
            return await self._refuse_incomplete(recipient, envelope, received)
        async with self._desk.taking.slot(recipient.tenant.org):
            raw = bytes(received.body)
            received.body.clear()
            return reply_to(await intake.take(recipient, envelope, raw))

    async def _refuse_incomplete(self, recipient: Recipient, envelope: Envelope, received: Received) -> str:
        if received.no_room:
            return NO_ROOM
        refused = too_large() if received.too_large else not_clean(f"A line has more than {LONGEST_LINE} bytes.")
        return reply_to(await self._desk.intake.refuse(recipient, envelope, bytes(received.body), refused))

    def _envelope(self, sender: str) -> Envelope:
        assert self.session is not None
        return Envelope(
            sender="" if sender in ("<>", "") else _storable(sender),
            peer=self._forwarded.peer or self._entered or "",
            helo=_storable(self._forwarded.helo or self.session.host_name or ""),
        )

    def _is_relay(self) -> bool:
        return self._entered is not None and self._desk.peers.is_relay(self._entered)

    def _hang_up(self) -> None:
        if self.transport is not None:
            self.transport.close()
