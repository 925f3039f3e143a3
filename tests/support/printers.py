"""Fork server whose renderer of PDF runs away, for tests: `python tests/support/printers.py`."""

import sys
from pathlib import Path

from adapters.processes.fork_server import ForkServer, exit_with_parent_and_inherit_socket
from adapters.processes.pdf import CHECK_FUNCTION, PRINT_FUNCTION


def run_away(html: str, files: dict[str, bytes], folder: str) -> bytes:
    """Compute, allocate, or return too much, as the document says; leave a temporary file."""
    Path(folder, "left").write_bytes(b"x")
    while html == "computing":
        pass
    return b"x" * (10**12 if html == "allocating" else 10**6 if html == "answering" else 1)


def check_libraries() -> bool:
    """Return True."""
    return True


def main(parent_id: str, memory_mib: str) -> None:
    """Serve requests on the socket at standard input."""
    functions = {PRINT_FUNCTION: run_away, CHECK_FUNCTION: check_libraries}
    ForkServer(exit_with_parent_and_inherit_socket(parent_id), lambda: functions, int(memory_mib) << 20).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
