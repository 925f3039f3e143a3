"""Fork server with readers that perform the action named by connector or snapshot: `python -m tests.support.hostile_reader`."""

import ctypes
import os
import signal
import socket
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from adapters.api_json.codec import JsonCodec
from adapters.processes.feed_readers import ReaderSession
from adapters.processes.fork_server import ForkServer
from domain.catalogue.statements import ProductStatement
from domain.ingestion.ports import FeedLine, ParseFailed, ReadRequest
from domain.ingestion.snapshot_results import BucketKeys, FeedExcerpt, SnapshotSample, SpoolResult
from domain.kernel.problems import Problem

MEMORY = 256 << 20


def _exhaust_memory() -> None:
    held = []
    while True:
        held.append(bytes(8 << 20))


def _loop_forever() -> None:
    while True:
        pass


def _environment() -> None:
    raise ParseFailed(
        " ".join(sorted(name for name in os.environ if name.startswith(("JOINERY", "PG", "AWS")))) or "none"
    )


ACTIONS = {
    "eat": _exhaust_memory,
    "spin": _loop_forever,
    "abort": os.abort,
    "die": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "segfault": lambda: ctypes.string_at(0),
    "leave": lambda: os._exit(7),
    "sleep": lambda: time.sleep(600),
    "raise": lambda: {}["a secret of the file"],
    "environment": _environment,
    "server": lambda: (os.kill(os.getppid(), signal.SIGKILL), time.sleep(600)),
}


class HostileReader:
    """Fake of `domain.runs.usecases.snapshot_reader.SnapshotReader`."""

    row_count = 5

    def __init__(self, order: ReadRequest) -> None:
        self._order = order

    def spool(self) -> SpoolResult:
        """Perform the action."""
        content = Path(self._order.snapshot).read_bytes()[:20].decode()
        action = ACTIONS.get(self._order.connector) or ACTIONS.get("sleep" if self._order.has_records else content)
        if action is not None:
            action()
        return SpoolResult(0, [0], [], frozenset(), [], 0)

    def load_keys(self, buckets: range) -> BucketKeys:
        """Return no keys."""
        del buckets
        return BucketKeys([], [], [])

    def load_statements(
        self, buckets: range, keys: Collection[str], problems: list[Problem]
    ) -> Iterator[ProductStatement]:
        """Return no statements."""
        del buckets, keys, problems
        return iter(())

    def read_sample(self, count: int) -> SnapshotSample:
        """Return the process ID of the reader as the sample."""
        del count
        return SnapshotSample([{"pid": os.getpid()}])

    def read_excerpts(self, lines: Collection[FeedLine], context_rows: int) -> Sequence[FeedExcerpt]:
        """Return no excerpts."""
        del lines, context_rows
        return []

    def close(self) -> None:
        """Write a marker file."""
        Path(self._order.folder, "closed").touch()


def main() -> None:
    """Serve the socket on standard input."""
    control = socket.socket(fileno=0)
    ForkServer(control, lambda: ReaderSession(HostileReader, JsonCodec()).functions, MEMORY).run()


if __name__ == "__main__":
    sys.exit(main())
