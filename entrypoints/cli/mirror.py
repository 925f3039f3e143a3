"""`joinery mirror`: maintenance of a copy of a catalogue in a file or folder (docs/exports.md)."""

import os
import sys
from pathlib import Path

from entrypoints.errors import CommandError
from entrypoints.mirror.copies import open_copy
from entrypoints.mirror.replication import replicate


async def mirror(*, url: str | None = None, key: str | None = None, to: Path, once: bool = False) -> int:
    """Copy a catalogue through the API and keep the copy up to date.

    Args:
        url: URL of the service (default: $JOINERY_URL).
        key: API key (default: $JOINERY_KEY).
        to: Path of the copy: FILE.sqlite, or a folder.
        once: Stop when the copy is up to date.
    """
    url, key = url or os.environ.get("JOINERY_URL"), key or os.environ.get("JOINERY_KEY")
    if not url or not key:
        raise CommandError("Set the service's URL and a key: --url and --key, or JOINERY_URL and JOINERY_KEY.")
    with open_copy(to) as copy:
        await replicate(url, key, copy, _print_progress, once=once)
    return 0


def _print_progress(line: str) -> None:
    """Print a progress message to standard error."""
    print(line, file=sys.stderr, flush=True)
