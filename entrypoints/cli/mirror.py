"""`joinery mirror`: a copy of a catalogue in a file or a folder, kept right by the change feed (docs/exports.md)."""

import os
import sys
from pathlib import Path

from entrypoints.errors import CommandError
from entrypoints.mirror.api import PATIENCE, connected
from entrypoints.mirror.copies import opened
from entrypoints.mirror.following import Mirror


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
    if not url.startswith(("http://", "https://")) or not key.isascii() or not key.isprintable():
        raise CommandError("--url is an address such as https://joinery.example, and --key a key such as svc_live_…")
    with opened(to) as copy:
        async with connected(url, key, PATIENCE if once else None, _say) as api:
            await Mirror(api, copy, _say).run(once=once)
    return 0


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
