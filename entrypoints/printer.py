"""`python -m entrypoints.printer`: renders HTML as PDF, each document in its own child process.

The process ends at once if WeasyPrint or one of its libraries is not installed.
"""

import sys
from typing import Final

from adapters.pdf import check_libraries, print_pdf
from adapters.processes.fork_server import ForkServer, exit_with_parent_and_inherit_socket
from adapters.processes.pdf import CHECK_FUNCTION, PRINT_FUNCTION
from adapters.processes.protocol import Functions

FUNCTIONS: Final[Functions] = {PRINT_FUNCTION: print_pdf, CHECK_FUNCTION: check_libraries}


def main(parent_id: str, memory_mib: str) -> None:
    """Serve requests on the socket at standard input.

    Args:
        parent_id: The ID of the process that started this one.
        memory_mib: The limit of each child's address space in MiB.
    """
    ForkServer(exit_with_parent_and_inherit_socket(parent_id), lambda: FUNCTIONS, int(memory_mib) << 20).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
