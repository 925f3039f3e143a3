"""`joinery mirror`: a copy of a catalogue in a file or a folder, kept right by the change feed (docs/exports.md)."""

import argparse
import os
import sys

from entrypoints.cli.errors import CommandError
from entrypoints.mirror.api import PATIENCE, connected
from entrypoints.mirror.copies import opened
from entrypoints.mirror.following import Mirror


async def mirror(options: argparse.Namespace) -> int:
    """Run until it is ended, or with `--once` until everything is read. Raises CommandError."""
    url, key = options.url or os.environ.get("JOINERY_URL"), options.key or os.environ.get("JOINERY_KEY")
    if not url or not key:
        raise CommandError("Give the service's address and a key: --url and --key, or JOINERY_URL and JOINERY_KEY.")
    with opened(options.to) as copy:
        async with connected(url, key, PATIENCE if options.once else None) as api:
            await Mirror(api, copy, lambda line: print(line, file=sys.stderr, flush=True)).run(once=options.once)
    return 0
