"""Reads one message after DATA: whole, bounded, and with every line ended as it must be, so that nothing can hide behind it."""

import asyncio
from dataclasses import dataclass, field
from typing import Final

from domain.mail.model import LARGEST
from entrypoints.mail.peers import MIB, Peers

LINE_SECONDS: Final = 60.0
"""For how long a sender may pause within a message."""
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
    """The lines of one message; what it holds is given back by `release`."""

    def __init__(self, reader: asyncio.StreamReader, peers: Peers) -> None:
        self._reader, self._peers = reader, peers
        self.received = Received()
        self._drained = 0

    async def run(self) -> Received:
        """Read up to the line with a single dot. Raises SmuggledEnd, TimeoutError; ConnectionResetError for one without end."""
        received = self.received
        while True:
            async with asyncio.timeout(LINE_SECONDS):
                line = await self._line()
            if line == b".\r\n":
                return received
            if not line.endswith(b"\r\n") or line.find(b"\r", 0, -2) >= 0:
                raise SmuggledEnd(bytes(received.body[:HEAD]))
            self._keep(line[1:] if line.startswith(b".") else line)

    def release(self) -> None:
        """The message is out of hand."""
        self._peers.release(self.received.held)
        self.received.held = 0

    async def _line(self) -> bytes:
        """The next line to its LF. Of one that is too long, only the end."""
        while True:
            try:
                return await self._reader.readuntil(b"\n")
            except asyncio.LimitOverrunError as long:
                self.received.long_line = True
                self._drain(len(await self._reader.read(max(1, long.consumed))))
            except asyncio.IncompleteReadError as cut:
                raise ConnectionResetError from cut

    def _keep(self, line: bytes) -> None:
        received = self.received
        if not received.whole:
            self._drain(len(line))
            return
        if len(received.body) + len(line) > LARGEST:
            received.too_large = True
        elif len(received.body) + len(line) > received.held and not self._hold():
            received.no_room = True
        else:
            received.body += line
            return
        del received.body[HEAD:]

    def _hold(self) -> bool:
        if not self._peers.hold(MIB):
            return False
        self.received.held += MIB
        return True

    def _drain(self, bytes: int) -> None:
        """What is not kept is read to its end so that the answer is heard, unless there is no end to it."""
        self._drained += bytes
        if self._drained > 2 * LARGEST:
            raise ConnectionResetError("the message has no end")
