"""`python -m entrypoints.imager`: forks a process, without secret and store, for each image."""

import sys
from pathlib import Path

from adapters.images import webp_of
from adapters.processes.calls import CONVERT
from adapters.processes.fork_server import ForkServer, inherit_control_socket


def main(parent: str, memory: str) -> None:
    """Serve the socket on standard input. `memory` limits each child's address space, in MiB."""
    ForkServer(inherit_control_socket(parent), lambda: {CONVERT: convert}, int(memory) << 20).run()


def convert(source: str, target: str) -> list[tuple[str, int, int]]:
    """Convert the image `source` to `target` and smaller images next to it."""
    return webp_of(Path(source), Path(target))


if __name__ == "__main__":
    main(*sys.argv[1:])
