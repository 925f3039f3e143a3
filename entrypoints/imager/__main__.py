"""`python -m entrypoints.imager`: forks a process for each image of the one that started it, and ends with it."""

import os
import signal
import socket
import sys
from pathlib import Path

from adapters.images.webp import webp_of
from adapters.processes.fork_server import ForkServer
from adapters.processes.image_child import serve
from adapters.processes.lifeline import die_with_parent


def main(parent: str, memory: str) -> None:
    """Serve the socket on standard input. `memory` bounds each child's address space, in MiB."""
    die_with_parent(signal.SIGKILL, int(parent))
    control = socket.socket(fileno=os.dup(0))
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    ForkServer(control, lambda connection: serve(connection, webp_of), int(memory) << 20).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
