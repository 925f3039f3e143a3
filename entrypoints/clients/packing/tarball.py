"""The TypeScript package as `npm pack` lays it out."""

import gzip
import io
import tarfile
from collections.abc import Mapping
from typing import Final

_DAY: Final = 499_162_500
"""The time that npm itself gives every file (26 October 1985)."""


def tarball(files: Mapping[str, str]) -> bytes:
    """The tarball's bytes. `files` are the texts by their paths in the package."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path, text in sorted(files.items()):
            body = text.encode()
            entry = tarfile.TarInfo(f"package/{path}")
            entry.size, entry.mtime, entry.mode = len(body), _DAY, 0o644
            archive.addfile(entry, io.BytesIO(body))
    return gzip.compress(made.getvalue(), 9, mtime=0)
