"""`python -m entrypoints.reader`: forks feed readers without secret, store and network."""

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from adapters.files.spool import FileSpools
from adapters.pluggy.host import connect
from adapters.processes.feed_readers import ReaderSession
from adapters.processes.fork_server import ForkServer, inherit_control_socket
from adapters.wire.codec import JsonCodec
from connectors.sdk.context import Limits
from connectors.sdk.errors import BadData
from domain.ingestion.ports import ReadingOrder
from domain.runs.usecases.reading import SnapshotReading

SPOOLED = 4 << 20
"""Bytes of rows that a reader buffers before it writes them to files."""


class NoNetwork:
    """Implementation of connectors.sdk.HttpClient that rejects all requests."""

    def get(self, url: str, **_: Any) -> NoReturn:
        """Reject the request with BadData."""
        raise BadData("Snapshots are read without network access.")

    post = get


def main(parent: str, memory: str, version: str, plugins: str, limits: str) -> None:
    """Serve the socket on standard input. `memory` limits each reader, in MiB; `limits` (JSON) limits a file."""
    control = inherit_control_socket(parent)
    connectors = connect(Path(plugins), NoNetwork(), product_version=version, limits=Limits(**json.loads(limits)))
    codec = JsonCodec()

    def open_snapshot(order: ReadingOrder) -> SnapshotReading:
        return SnapshotReading(connectors, codec, partial(FileSpools, limit=SPOOLED), order)

    ForkServer(control, lambda: ReaderSession(open_snapshot, codec).functions, int(memory) << 20).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
