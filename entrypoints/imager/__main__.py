"""`python -m entrypoints.imager`: forks a process for each image of the one that started it, and ends with it."""

import sys
from pathlib import Path

from adapters.images.webp import webp_of
from adapters.processes.call_child import serve
from adapters.processes.fork_server import ForkServer, inherit_control_socket
from adapters.processes.images import CONVERT


def main(parent: str, memory: str) -> None:
    """Serve the socket on standard input. `memory` bounds each child's address space, in MiB."""
    ForkServer(
        inherit_control_socket(parent), lambda connection: serve(connection, {CONVERT: convert}), int(memory) << 20
    ).run()


def convert(source: str, target: str) -> list[tuple[str, int, int]]:
    """Convert the image `source` into `target` and smaller images next to it."""
    return webp_of(Path(source), Path(target))


if __name__ == "__main__":
    main(*sys.argv[1:])
