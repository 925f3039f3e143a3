"""Feed readers in the test's process, which can use fakes."""

from adapters.api_json.codec import JsonCodec
from adapters.files.spool import FileSpools
from domain.ingestion.ports import Connectors
from domain.runs.usecases.snapshot_reader import SnapshotReader
from tests.support.memory.feed_readers import MemoryFeedReaders


def create_in_process_readers(connectors: Connectors) -> MemoryFeedReaders:
    """Return readers that use the connectors."""
    return MemoryFeedReaders(lambda order: SnapshotReader(connectors, JsonCodec(), FileSpools, order))
