"""`python -m entrypoints.reader`: reads each feed in its own child process.

The child processes have no access to the service's secret, the object store or the network.
"""

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from adapters.api_json.codec import JsonCodec
from adapters.files.spool import FileSpools
from adapters.pluggy.host import load_connectors
from adapters.processes.feed_readers import ReaderSession
from adapters.processes.fork_server import ForkServer, exit_with_parent_and_inherit_socket
from connectors.sdk.context import Limits
from connectors.sdk.errors import BadData
from domain.ingestion.ports import ReadRequest
from domain.runs.usecases.snapshot_reader import SnapshotReader

MAX_BUFFERED_BYTES = 4 << 20
"""Bytes of rows that a reader buffers before it writes them to files."""


class RejectingHttpClient:
    """HTTP client for connectors (HttpClient in connectors.sdk) that rejects all requests."""

    def get(self, url: str, **_: Any) -> NoReturn:
        """Raise BadData for any request."""
        raise BadData(
            "The connector sent an HTTP request while parsing, which is not allowed. Send requests in `fetch`."
        )

    post = get


def main(parent_id: str, memory_mib: str, release: str, plugins_path: str, file_limits: str) -> None:
    """Serve requests on the socket at standard input.

    Args:
        parent_id: The ID of the process that started this one.
        memory_mib: The memory limit of each reader in MiB.
        release: The version of the release.
        plugins_path: The path of the plugin allowlist.
        file_limits: The limits of a feed file, as JSON.
    """
    control = exit_with_parent_and_inherit_socket(parent_id)
    connectors = load_connectors(
        Path(plugins_path), RejectingHttpClient(), release_version=release, limits=Limits(**json.loads(file_limits))
    )
    codec = JsonCodec()

    def open_snapshot(request: ReadRequest) -> SnapshotReader:
        return SnapshotReader(connectors, codec, partial(FileSpools, max_memory_bytes=MAX_BUFFERED_BYTES), request)

    ForkServer(control, lambda: ReaderSession(open_snapshot, codec).functions, int(memory_mib) << 20).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
