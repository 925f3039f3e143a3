"""`python -m entrypoints.parser`: forks a process for each input of the one that started it, and ends with it."""

import sys
from collections.abc import Callable
from typing import Any, Final

from adapters.markup import documents, page, sitemaps
from adapters.mime import reader
from adapters.processes.call_child import serve
from adapters.processes.calls import name_of
from adapters.processes.fork_server import ForkServer, inherit_control_socket
from adapters.senders import checks
from adapters.wire import category_rules
from entrypoints.http import body_check

_PARSERS: Final[tuple[Callable[..., Any], ...]] = (
    documents.robots_facts,
    documents.is_allowed,
    documents.json_value,
    page.facts_of,
    sitemaps.facts_of,
    reader.read,
    checks.verify,
    category_rules.listing,
    body_check.check,
)
FUNCTIONS: Final = {name_of(function): function for function in _PARSERS}


def main(parent: str, memory: str) -> None:
    """Serve the socket on standard input. `memory` bounds each child's address space, in MiB."""
    ForkServer(inherit_control_socket(parent), lambda connection: serve(connection, FUNCTIONS), int(memory) << 20).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
