"""The use cases of sources, runs and uploads on fakes, as an application would hold them."""

from dataclasses import dataclass, field
from datetime import timedelta

from adapters.aesgcm.vault import AesGcmVault
from adapters.memory.objects import MemoryObjects
from domain.runs.usecases.service import RunService
from domain.sources.usecases.service import SourceService
from domain.uploads.usecases import UploadService
from entrypoints.schemas import SchemaFaults
from tests.support.connectors import FakeConnectors

MINUTE = timedelta(minutes=1)


@dataclass
class Services:
    """The services and the fakes behind them."""

    connectors: FakeConnectors = field(default_factory=FakeConnectors)
    objects: MemoryObjects = field(default_factory=MemoryObjects)
    vault: AesGcmVault = field(default_factory=lambda: AesGcmVault("a secret of at least thirty-two characters"))

    @property
    def sources(self) -> SourceService:
        """Use cases of sources; the host files.internal may be private."""
        return SourceService(
            self.connectors,
            self.vault,
            SchemaFaults(),
            "in.joinery.test",
            frozenset({"files.internal", "127.0.0.1:9000"}),
        )

    @property
    def runs(self) -> RunService:
        """Use cases of runs."""
        return RunService(self.connectors)

    @property
    def uploads(self) -> UploadService:
        """Use cases of uploads."""
        return UploadService(self.objects)
