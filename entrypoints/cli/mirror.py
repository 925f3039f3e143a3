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
    if not url.startswith(("http://", "https://")) or not key.isascii() or not key.isprintable():
        raise CommandError("--url is an address such as https://joinery.example, and --key a key such as svc_live_…")
    with opened(options.to) as copy:
        async with connected(url, key, PATIENCE if options.once else None, _say) as api:
            await Mirror(api, copy, _say).run(once=options.once)
    return 0


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
