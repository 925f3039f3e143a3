"""`python -m entrypoints.parser`: parses data from outside, each item in its own child process.

An item is a web document, a mail, a large request body, a list of categories or of products.
"""

import sys

from adapters.api_json import category_rules
from adapters.markup import documents, page
from adapters.mime import reader
from adapters.processes.calls import map_functions_by_name
from adapters.processes.fork_server import ForkServer, exit_with_parent_and_inherit_socket
from adapters.senders import checks
from domain.agents.usecases import categories
from domain.matching import variant_groups
from entrypoints.http import body as body_check

FUNCTIONS = map_functions_by_name(
    documents.parse_robots,
    documents.is_allowed,
    documents.decode_json_or_none,
    page.parse_page,
    documents.parse_probe_sitemap,
    reader.parse_message,
    checks.verify_sender,
    category_rules.render_categories,
    categories.list_candidates,
    variant_groups.find_variant_groups,
    body_check.validate_body,
)


def main(parent_id: str, memory_mib: str) -> None:
    """Serve requests on the socket at standard input.

    Args:
        parent_id: The ID of the process that started this one.
        memory_mib: The limit of each child's address space in MiB.
    """
    ForkServer(exit_with_parent_and_inherit_socket(parent_id), lambda: FUNCTIONS, int(memory_mib) << 20).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
