"""`python -m entrypoints.imager`: converts images, each in its own child process.

The child processes have no access to the service's secret or the object store.
"""

import sys
from pathlib import Path

from adapters.images import convert_to_webp
from adapters.processes.calls import CONVERT_FUNCTION
from adapters.processes.fork_server import ForkServer, exit_with_parent_and_inherit_socket


def main(parent_id: str, memory_mib: str) -> None:
    """Run a fork server that converts images; the parent process controls it through the socket at standard input.

    Args:
        parent_id: The process ID of the parent; this process ends when the parent ends.
        memory_mib: The limit of each child's address space in MiB.
    """
    ForkServer(
        exit_with_parent_and_inherit_socket(parent_id), lambda: {CONVERT_FUNCTION: convert_image}, int(memory_mib) << 20
    ).run()


def convert_image(source: str, target: str) -> list[tuple[str, int, int]]:
    """Convert the image file `source` to WebP at `target`, with smaller renditions in the same folder.

    Returns:
        File name, width and height in pixels of each written file, the largest first.
    """
    return convert_to_webp(Path(source), Path(target))


if __name__ == "__main__":
    main(*sys.argv[1:])
