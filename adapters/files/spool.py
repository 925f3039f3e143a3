"""Buffers of lines by bucket, in memory up to a limit, then in temporary files."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


class FileSpool:
    """Buffer of lines by bucket (port SpoolFile in domain/runs/ports.py).

    Args:
        folder: The folder of the buckets' files.
        buckets: The number of buckets.
        max_memory_bytes: Bytes in memory above which all lines are written to files.
    """

    def __init__(self, folder: Path, buckets: int, max_memory_bytes: int) -> None:
        self._folder = folder
        self._limit = max_memory_bytes
        self._pending: list[list[bytes]] = [[] for _ in range(buckets)]
        self._bytes = 0
        self._written: set[int] = set()

    def add_line(self, bucket: int, line: bytes) -> None:
        self._pending[bucket].append(line)
        self._bytes += len(line) + 48
        if self._bytes > self._limit:
            self._write_buckets()

    def _write_buckets(self) -> None:
        """Append the lines in memory to the files of their buckets."""
        for bucket, lines in enumerate(self._pending):
            if lines:
                with (self._folder / str(bucket)).open("ab") as file:
                    file.write(b"\n".join(lines) + b"\n")
                self._written.add(bucket)
                self._pending[bucket] = []
        self._bytes = 0

    def read_lines(self, bucket: int) -> Sequence[bytes]:
        if bucket not in self._written:
            return self._pending[bucket]
        stored = (self._folder / str(bucket)).read_bytes().split(b"\n")
        stored.pop()
        return stored + self._pending[bucket]


class FileSpools:
    """Factory of buffers of lines by bucket (port SpoolFactory in domain/runs/ports.py).

    Args:
        folder: The folder for temporary files; None for that of the system.
        max_memory_bytes: Bytes in memory above which a buffer writes its lines to files.
    """

    def __init__(self, folder: Path | None = None, max_memory_bytes: int = 8 << 20) -> None:
        self._folder = folder
        self._limit = max_memory_bytes

    @contextmanager
    def create(self, bucket_count: int) -> Iterator[FileSpool]:
        with tempfile.TemporaryDirectory(prefix="joinery-spool-", dir=self._folder) as name:
            yield FileSpool(Path(name), bucket_count, self._limit)
