"""Reads one message after DATA: whole, bounded, and with every line ended as it must be, so that nothing can hide behind it."""

import asyncio
import re
from dataclasses import dataclass, field
from typing import Final

from domain.kernel.errors import DomainError
from domain.mail.model import LARGEST
from entrypoints.mail.peers import MIB, Peers

LINE_SECONDS: Final = 60.0
"""For how long a sender may pause within a message."""
_LINE_END: Final = b"\r\n"
_END: Final = b"\r\n.\r\n"
_DOTTED: Final = b"\r\n."
_BARE: Final = re.compile(rb"(?<!\r)\n|\r[^\n]")
_ALL: Final = 16 * MIB
"""More than a reader ever holds."""
LONGEST_LINE: Final = 64 * 1024
HEAD: Final = 64 * 1024
"""Bytes of a refused message that are kept to tell from whom it was."""


class SmuggledEnd(Exception):
    """A line does not end in CR LF: what this server takes for text, another may take for the end of the message."""

    def __init__(self, head: bytes) -> None:
        super().__init__("A line of the message does not end in CR LF.")
        self.head = head


@dataclass(slots=True)
class Received:
    """A message as it came, or its beginning: `too_large` for the limit, `no_room` for what is in hand."""

    body: bytearray = field(default_factory=bytearray)
    too_large: bool = False
    no_room: bool = False
    long_line: bool = False
    held: int = 0

    @property
    def whole(self) -> bool:
        """Whether all of it is there."""
        return not (self.too_large or self.no_room or self.long_line)


class Receiving:
    """The text of one message; what it holds is given back by `release`.

    It is read in pieces that begin with the line end before them and end at one, so that no end of a message, no bare line
    end and no doubled dot falls between two.
    """

    def __init__(self, reader: asyncio.StreamReader, peers: Peers) -> None:
        self._reader, self._peers = reader, peers
        self.received = Received()
        self._drained = 0

    async def run(self) -> Received:
        """Read up to the line with a single dot. Raises SmuggledEnd, TimeoutError; ConnectionResetError for one without end."""
        open_line = _LINE_END
        while True:
            text = open_line + await self._more()
            seen = max(0, len(open_line) - len(_END))  # a line that comes byte by byte is not searched anew for each
            end = text.find(_END, seen)
            if bare := _BARE.search(text, seen, end + len(_LINE_END) if end >= 0 else len(text)):
                self._keep(text[: bare.start()])
                raise SmuggledEnd(bytes(self.received.body[len(_LINE_END) : HEAD]))
            if end >= 0:
                self._keep(text[: end + len(_LINE_END)])
                if not self._reader.at_eof():
                    self._reader.feed_data(text[end + len(_END) :])
                del self.received.body[: len(_LINE_END)]
                return self.received
            cut = max(0, text.rfind(_LINE_END, seen))
            self._keep(text[:cut])
            open_line = self._bounded(text[cut:])

    def release(self) -> None:
        """The message is out of hand."""
        self._peers.bytes.release("", self.received.held)
        self.received.held = 0

    async def _more(self) -> bytes:
        """All that has come: nothing is left with the reader, so that what follows the message can be given back to it."""
        async with asyncio.timeout(LINE_SECONDS):
            piece = await self._reader.read(_ALL)
        if not piece:
            raise ConnectionResetError
        return piece

    def _bounded(self, open_line: bytes) -> bytes:
        """The line that has not ended yet; of one that is too long only what its end can be told by."""
        if len(open_line) <= LONGEST_LINE:
            return open_line
        self.received.long_line = True
        self._drain(len(open_line))
        return _LINE_END + b"x" + open_line[-len(_END) :]

    def _keep(self, piece: bytes) -> None:
        received = self.received
        if _has_long_line(piece):
            received.long_line = True
        if not received.whole:
            self._drain(len(piece))
            return
        plain = piece.replace(_DOTTED, _LINE_END)
        if len(received.body) + len(plain) > LARGEST + len(_LINE_END):
            received.too_large = True
        elif not self._hold(len(received.body) + len(plain)):
            received.no_room = True
        received.body += plain
        if not received.whole:
            del received.body[HEAD:]

    def _hold(self, size: int) -> bool:
        """Have so many bytes counted as in hand, by whole MiB."""
        while self.received.held < size:
            try:
                self._peers.bytes.take("", MIB)
            except DomainError:
                return False
            self.received.held += MIB
        return True

    def _drain(self, bytes: int) -> None:
        """What is not kept is read to its end so that the answer is heard, unless there is no end to it."""
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
