"""`python -m entrypoints.reader`: forks readers of feeds, without secret, store and network, for the process that started it, and ends with it."""

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
"""How many bytes of rows a reader holds before they go to files."""


class NoNetwork:
    """connectors.sdk.HttpClient that refuses."""

    def get(self, url: str, **_: Any) -> NoReturn:
        """Refuse."""
        raise BadData("A snapshot is read without network.")

    post = get


def main(parent: str, memory: str, version: str, plugins: str, limits: str) -> None:
    """Serve the socket on standard input. `memory` bounds each reader, in MiB; `limits` (JSON) what it takes of a file."""
    control = inherit_control_socket(parent)
    connectors = connect(Path(plugins), NoNetwork(), product_version=version, limits=Limits(**json.loads(limits)))
    codec = JsonCodec()

    def open_snapshot(order: ReadingOrder) -> SnapshotReading:
        return SnapshotReading(connectors, codec, partial(FileSpools, limit=SPOOLED), order)

    ForkServer(control, lambda: ReaderSession(open_snapshot, codec).functions, int(memory) << 20).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
