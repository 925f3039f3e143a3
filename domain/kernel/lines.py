"""Lines of documents as bytes that are copied from store to file unparsed."""

from typing import NamedTuple


class Lines(NamedTuple):
    """Complete lines, each ended by a newline."""

    rows: int
    data: bytes
