"""`joinery mirror`: a copy of a catalogue in a file or a folder, kept right by the change feed (docs/exports.md)."""

import os
import sys
from pathlib import Path

from entrypoints.errors import CommandError
from entrypoints.mirror.copies import opened
from entrypoints.mirror.replication import replicate


async def mirror(*, url: str | None = None, key: str | None = None, to: Path, once: bool = False) -> int:
    """Keep a copy of a catalogue, through the API alone.

    Args:
        url: the service's address (default: $JOINERY_URL)
        key: an API key (default: $JOINERY_KEY)
        to: FILE.sqlite, or a folder
        once: end as soon as everything is read
    """
    url, key = url or os.environ.get("JOINERY_URL"), key or os.environ.get("JOINERY_KEY")
    if not url or not key:
        raise CommandError("Give the service's address and a key: --url and --key, or JOINERY_URL and JOINERY_KEY.")
    with opened(to) as copy:
        await replicate(url, key, copy, _say, once=once)
    return 0


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
