"""Lines of JSON documents as bytes, which are copied from database to file without parsing."""

from typing import NamedTuple


class Lines(NamedTuple):
    """Complete lines, each with a newline at its end; `rows` is their number."""

    rows: int
    data: bytes
