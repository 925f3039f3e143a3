"""Spools in memory up to a few megabytes, then in files of a temporary folder."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


class FileSpool:
    """Spool that keeps lines in memory; above `limit` bytes each bucket is appended to its file."""

    def __init__(self, folder: Path, buckets: int, limit: int) -> None:
        self._folder = folder
        self._limit = limit
        self._pending: list[list[bytes]] = [[] for _ in range(buckets)]
        self._bytes = 0
        self._written: set[int] = set()

    def put(self, bucket: int, line: bytes) -> None:
        self._pending[bucket].append(line)
        self._bytes += len(line) + 48
        if self._bytes > self._limit:
            self._write()

    def _write(self) -> None:
        for bucket, lines in enumerate(self._pending):
            if lines:
                with (self._folder / str(bucket)).open("ab") as file:
                    file.write(b"\n".join(lines) + b"\n")
                self._written.add(bucket)
                self._pending[bucket] = []
        self._bytes = 0

    def lines(self, bucket: int) -> Sequence[bytes]:
        if bucket not in self._written:
            return self._pending[bucket]
        stored = (self._folder / str(bucket)).read_bytes().split(b"\n")
        stored.pop()
        return stored + self._pending[bucket]


class FileSpools:
    """Spools below the system's, or another, temporary folder."""

    def __init__(self, folder: Path | None = None, limit: int = 8 << 20) -> None:
        self._folder = folder
        self._limit = limit

    @contextmanager
    def open(self, buckets: int) -> Iterator[FileSpool]:
        with tempfile.TemporaryDirectory(prefix="joinery-spool-", dir=self._folder) as name:
            yield FileSpool(Path(name), buckets, self._limit)
