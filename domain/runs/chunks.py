"""Division of a feed's rows into buckets by a hash of their key (the slot), and of consecutive buckets into chunks."""

from collections.abc import Mapping, Sequence
from zlib import crc32

from domain.catalogue.batch import SLOT_COUNT, RowFingerprint
from domain.catalogue.model import Stream
from domain.kernel.bounds import BYTES_PER_COUNTED_ROW

BUCKET_BYTES = 16 << 10
MAX_BUCKETS = 1024
CHUNK_ROWS = {Stream.CATALOGUE: 2_000, Stream.STOCK: 6_000}
"""Approximate number of rows in a chunk. A chunk is usually written in one transaction."""
BASE_SPOOL_BYTES = 256 << 20
"""Bytes of rows that may be spooled for every snapshot, in addition to a multiple of its size."""
_LOW_BITS_MASK = 0xFFF
"""Mask of the low bits of a stock slot. Only these bits depend on the last two characters of the key."""


def compute_bucket_count(snapshot_bytes: int, *, is_compressed: bool) -> int:
    """Return the number of buckets for the rows of a snapshot.

    Args:
        snapshot_bytes: Size of the snapshot in bytes.
        is_compressed: Whether the snapshot is compressed and therefore contains about six times as much.
    """
    return max(1, min(MAX_BUCKETS, -(-snapshot_bytes * (6 if is_compressed else 1) // BUCKET_BYTES)))


def compute_max_spool_bytes(snapshot_bytes: int, *, is_compressed: bool) -> int:
    """Return the maximum number of bytes of rows that may be spooled for a snapshot; a larger feed is refused.

    Args:
        snapshot_bytes: Size of the snapshot in bytes.
        is_compressed: Whether the snapshot is compressed.
    """
    # usual feeds need up to ten times their size: an empty cell is a comma in the file, but `null,` in the spool;
    # a feed with two thousand columns but rows of two cells needs hundreds of times its size
    return BASE_SPOOL_BYTES + 24 * snapshot_bytes * (6 if is_compressed else 1)


def compute_slot(key: str, stream: Stream) -> int:
    """Return the slot of a key: a hash from 0 up to, but not including, SLOT_COUNT.

    SKUs of stock that differ only in the last two characters have neighbouring slots.
    """
    # items of one product usually differ in the last two characters of the SKU; if they are in the same chunk, a stock
    # sheet is read three times as fast
    if stream == Stream.CATALOGUE:
        return crc32(key.encode()) >> 1
    return crc32(key[:-2].encode()) >> 1 & ~_LOW_BITS_MASK | crc32(key.encode()) & _LOW_BITS_MASK


def create_invalid_fingerprint(key: str, stream: Stream) -> RowFingerprint:
    """Return a fingerprint of the key that no rows match, so that the next run applies the key's rows again."""
    return RowFingerprint(compute_slot(key, stream), key, b"")


def compute_slot_range(chunk: range, total_buckets: int) -> tuple[int, int]:
    """Return the range of slots whose keys are in a chunk: the first slot, and the end (exclusive).

    Args:
        chunk: The chunk's buckets.
        total_buckets: Total number of buckets, among which all slots are divided evenly.
    """
    return -(-chunk.start * SLOT_COUNT // total_buckets), -(-chunk.stop * SLOT_COUNT // total_buckets)


def divide_buckets(bucket_sizes: Sequence[int], stream: Stream) -> list[range]:
    """Divide the buckets into chunks of about CHUNK_ROWS rows: at least one range of consecutive buckets.

    Args:
        bucket_sizes: Number of rows in each bucket.
        stream: Stream of the feed.
    """
    # an empty feed has a chunk as well, so that absent keys are found
    chunks, first, rows = [], 0, 0
    for bucket, row_count in enumerate(bucket_sizes):
        rows += row_count
        if rows >= CHUNK_ROWS[stream]:
            chunks.append(range(first, bucket + 1))
            first, rows = bucket + 1, 0
    if first < len(bucket_sizes):
        chunks.append(range(first, len(bucket_sizes)))
    return chunks


def split_keys(weight_by_key: Mapping[str, int], max_weight: int) -> list[list[str]]:
    """Split the keys, in order, into one or more portions with a total weight of about `max_weight` each.

    Args:
        weight_by_key: Weight of each key.
        max_weight: Total weight at which the next portion begins.
    """
    # this limits the size of a transaction even if all keys of a vendor are in the same bucket
    portions: list[list[str]] = [[]]
    total = 0
    for key, weight in weight_by_key.items():
        if total >= max_weight:
            portions.append([])
            total = 0
        portions[-1].append(key)
        total += weight
    return portions


def describe_division(chunks: Sequence[range], total_buckets: int, stream: Stream) -> str:
    """Return a text that identifies the division of a feed into chunks, for comparison with a run's checkpoint."""
    return f"{len(chunks)} of {total_buckets} by {CHUNK_ROWS[stream]} of {BYTES_PER_COUNTED_ROW}"
