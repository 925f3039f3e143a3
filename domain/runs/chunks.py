"""Division of a feed: rows into buckets by a hash of their key, and consecutive buckets into chunks."""

from collections.abc import Mapping, Sequence
from zlib import crc32

from domain.catalogue.batch import SLOTS, RowFingerprint
from domain.catalogue.model import Stream
from domain.kernel.bounds import SHEET_ROW_BYTES

BUCKET_BYTES = 16 << 10
MOST_BUCKETS = 1024
CHUNK_ROWS = {Stream.CATALOGUE: 2_000, Stream.STOCK: 6_000}
"""Approximate number of rows per transaction: large enough for set operations, small enough for memory and the high watermark."""
ROOM = 256 << 20
"""Maximum bytes of rows that are spooled for any snapshot."""
_FINE = 0xFFF


def bucket_count(size: int, *, packed: bool) -> int:
    """Return the number of buckets for a snapshot of `size` bytes; packed ones hold about six times as much."""
    return max(1, min(MOST_BUCKETS, -(-size * (6 if packed else 1) // BUCKET_BYTES)))


def spool_room(size: int, *, packed: bool) -> int:
    """Return the maximum number of bytes of rows that are spooled for a snapshot of `size` bytes.

    Ordinary feeds need up to ten times their size (an empty cell is a comma in the file and `null,` in the spool); a feed
    with two thousand header columns and rows of two cells needs hundreds.
    """
    return ROOM + 24 * size * (6 if packed else 1)


def slot_of(key: str, stream: Stream) -> int:
    """Return the slot of a key, a hash below SLOTS.

    Stock is keyed by item, and items of one product mostly differ in the last two characters of their SKU. The high
    bits of the hash ignore these, so that one chunk covers a product (measured: a third of the time for a stock sheet).
    """
    if stream == Stream.CATALOGUE:
        return crc32(key.encode()) >> 1
    return crc32(key[:-2].encode()) >> 1 & ~_FINE | crc32(key.encode()) & _FINE


def outdated(key: str, stream: Stream) -> RowFingerprint:
    """Return a fingerprint that no row has, so that the next run applies the key again."""
    return RowFingerprint(slot_of(key, stream), key, b"")


def slots_of(chunk: range, buckets: int) -> tuple[int, int]:
    """Return the slots of a range of `buckets` buckets: the first, and the end (exclusive)."""
    return -(-chunk.start * SLOTS // buckets), -(-chunk.stop * SLOTS // buckets)


def chunks_of(held: Sequence[int], stream: Stream) -> list[range]:
    """Return the chunks, as ranges of consecutive buckets, from the rows `held` in each bucket.

    There is at least one chunk, so that absent keys are found even in an empty feed.
    """
    chunks, first, rows = [], 0, 0
    for bucket, number in enumerate(held):
        rows += number
        if rows >= CHUNK_ROWS[stream]:
            chunks.append(range(first, bucket + 1))
            first, rows = bucket + 1, 0
    if first < len(held):
        chunks.append(range(first, len(held)))
    return chunks


def portions_of(weights: Mapping[str, int], most: int) -> list[list[str]]:
    """Split the keys in order into portions that weigh about `most`; there is at least one portion.

    This bounds a transaction even if a vendor chooses keys that all fall into one bucket.
    """
    portions: list[list[str]] = [[]]
    weight = 0
    for key, own in weights.items():
        if weight >= most:
            portions.append([])
            weight = 0
        portions[-1].append(key)
        weight += own
    return portions


def shape_of(chunks: Sequence[range], buckets: int, stream: Stream) -> str:
    """Return the parameters of the division; a release that divides differently restarts the run."""
    return f"{len(chunks)} of {buckets} by {CHUNK_ROWS[stream]} of {SHEET_ROW_BYTES}"
