"""A fork server whose readers do what their connector's name, or the snapshot, says: `python -m tests.support.hostile_reader`."""

import ctypes
import os
import signal
import socket
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from adapters.processes.feed_readers import ReaderSession
from adapters.processes.fork_server import ForkServer
from adapters.wire.codec import JsonCodec
from domain.catalogue.statements import ProductStatement
from domain.ingestion.ports import ParseFailed, Place, ReadingOrder
from domain.ingestion.reading import Excerpt, Gathered, Sample, SpooledRows
from domain.kernel.problems import Problem

MEMORY = 256 << 20


def _eat() -> None:
    held = []
    while True:
        held.append(bytes(8 << 20))


def _spin() -> None:
    while True:
        pass


def _environment() -> None:
    raise ParseFailed(
        " ".join(sorted(name for name in os.environ if name.startswith(("JOINERY", "PG", "AWS")))) or "none"
    )


DEEDS = {
    "eat": _eat,
    "spin": _spin,
    "abort": os.abort,
    "die": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "segfault": lambda: ctypes.string_at(0),
    "leave": lambda: os._exit(7),
    "sleep": lambda: time.sleep(600),
    "raise": lambda: {}["a secret of the file"],
    "environment": _environment,
    "server": lambda: (os.kill(os.getppid(), signal.SIGKILL), time.sleep(600)),
}


class HostileReading:
    """ports.feed_readers.SnapshotReader."""

    rows = 5

    def __init__(self, order: ReadingOrder) -> None:
        self._order = order

    def spool(self) -> SpooledRows:
        """Do the deed, if it is one."""
        content = Path(self._order.snapshot).read_bytes()[:20].decode()
        deed = DEEDS.get(self._order.connector) or DEEDS.get("sleep" if self._order.pushed else content)
        if deed is not None:
            deed()
        return SpooledRows(0, [0], [], frozenset(), [], 0)

    def gather(self, buckets: range) -> Gathered:
        """Nothing."""
        del buckets
        return Gathered([], [], [])

    def statements(self, buckets: range, keys: Collection[str], problems: list[Problem]) -> Iterator[ProductStatement]:
        """Nothing."""
        del buckets, keys, problems
        return iter(())

    def sample(self, count: int) -> Sample:
        """Who reads."""
        del count
        return Sample([{"pid": os.getpid()}])

    def excerpt(self, lines: Collection[Place], beside: int) -> Sequence[Excerpt]:
        """Nothing."""
        del lines, beside
        return []

    def close(self) -> None:
        """Leave a mark."""
        Path(self._order.folder, "closed").touch()


def main() -> None:
    """Serve the socket on standard input."""
    control = socket.socket(fileno=0)
    ForkServer(control, lambda: ReaderSession(HostileReading, JsonCodec()).functions, MEMORY).run()


if __name__ == "__main__":
    sys.exit(main())
