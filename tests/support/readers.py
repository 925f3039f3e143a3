"""Readers of feeds in the test's own process, so that what they read with can be a fake."""

from adapters.api_json.codec import JsonCodec
from adapters.files.spool import FileSpools
from domain.ingestion.ports import Connectors
from domain.runs.usecases.snapshot_reader import SnapshotReader
from tests.support.memory.feed_readers import MemoryFeedReaders


def create_in_process_readers(connectors: Connectors) -> MemoryFeedReaders:
    """Readers over these connectors."""
    return MemoryFeedReaders(lambda order: SnapshotReader(connectors, JsonCodec(), FileSpools, order))
