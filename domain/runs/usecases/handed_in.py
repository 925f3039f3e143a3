"""What was last handed in of a source that is not pulled: its newest file, or its newest push."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from domain.ingestion.ports import FetchFailed
from domain.kernel.paging import PageRequest
from domain.runs.model import PushInput, Run, RunFilter, RunStatus, UploadInput
from domain.runs.ports import PushStore, RunStore
from domain.sources.model import Source
from ports.objects import ObjectMissing, Objects
from ports.unit_of_work import Tx


@dataclass(frozen=True, slots=True)
class HandedIn:
    """Finds it while a transaction is open, to be read when that is over."""

    objects: Objects

    async def __call__(self, tx: Tx, source: Source) -> Callable[[], AsyncIterator[bytes]] | None:
        """Reads the bytes of the newest run that has any still; None without one. Reading raises FetchFailed."""
        for run in (await tx[RunStore].page(PageRequest(limit=20), RunFilter(source.id))).items:
            if key := _key(run):
                return lambda key=key: self._object(key)  # type: ignore[misc]
            if isinstance(run.input, PushInput) and (part := await tx[PushStore].part(run.id, 0)) is not None:
                return lambda part=part: _given(part)  # type: ignore[misc]
        return None

    async def _object(self, key: str) -> AsyncIterator[bytes]:
        try:
            async for chunk in self.objects.read(key):
                yield chunk
        except ObjectMissing as error:
            raise FetchFailed("fetch_failed", "What was handed in last is kept no more; hand it in again.") from error


def _key(run: Run) -> str | None:
    """Where its bytes lie: those of a file until its run is over, then those of the snapshot."""
    if run.snapshot is not None:
        return run.snapshot
    waits = run.status in (RunStatus.QUEUED, RunStatus.RUNNING)
    return run.input.key if waits and isinstance(run.input, UploadInput) else None


async def _given(part: bytes) -> AsyncIterator[bytes]:
    yield part.replace(b"\n", b" ") + b"\n"
