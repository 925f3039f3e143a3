"""Documents one a line, as bytes: what is copied from store to file without being looked into."""

from typing import NamedTuple


class Lines(NamedTuple):
    """So many whole lines, each ended by a newline."""

    rows: int
    data: bytes
