"""Readers of feeds in the test's own process, so that what they read with can be a fake."""

from adapters.files.spool import FileSpools
from adapters.memory.feed_readers import MemoryFeedReaders
from adapters.wire.codec import JsonCodec
from domain.ingestion.ports import Connectors
from domain.runs.usecases.reading import SnapshotReading


def in_process(connectors: Connectors) -> MemoryFeedReaders:
    """Readers over these connectors."""
    return MemoryFeedReaders(lambda order: SnapshotReading(connectors, JsonCodec(), FileSpools, order))
