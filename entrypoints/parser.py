"""`python -m entrypoints.parser`: forks a process for each web document, mail, dense body or list of categories."""

import sys

from adapters.markup import documents, page
from adapters.mime import reader
from adapters.processes.calls import functions_by_name
from adapters.processes.fork_server import ForkServer, inherit_control_socket
from adapters.senders import checks
from adapters.wire import category_rules
from entrypoints.http import body as body_check

FUNCTIONS = functions_by_name(
    documents.robots_facts,
    documents.is_allowed,
    documents.json_value,
    page.facts_of,
    documents.sitemap_facts,
    reader.read,
    checks.verify,
    category_rules.listing,
    body_check.check,
)


def main(parent: str, memory: str) -> None:
    """Serve the socket on standard input. `memory` limits each child's address space, in MiB."""
    ForkServer(inherit_control_socket(parent), lambda: FUNCTIONS, int(memory) << 20).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
