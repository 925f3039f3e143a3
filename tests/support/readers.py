"""Readers of feeds in the test's own process, so that what they read with can be a fake."""

from adapters.files.spool import FileSpools
from adapters.wire.codec import JsonCodec
from domain.ingestion.ports import Connectors
from domain.runs.usecases.reading import SnapshotReading
from tests.support.memory.feed_readers import MemoryFeedReaders


def in_process(connectors: Connectors) -> MemoryFeedReaders:
    """Readers over these connectors."""
    return MemoryFeedReaders(lambda order: SnapshotReading(connectors, JsonCodec(), FileSpools, order))
