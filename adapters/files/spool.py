"""Spools in memory up to a few megabytes, then in files of a temporary folder."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


class FileSpool:
    """Lines gather in memory; past `limit` bytes each chunk is appended to its file."""

    def __init__(self, folder: Path, chunks: int, limit: int) -> None:
        self._folder = folder
        self._limit = limit
        self._held: list[list[bytes]] = [[] for _ in range(chunks)]
        self._bytes = 0
        self._written: set[int] = set()

    def put(self, chunk: int, line: bytes) -> None:
        """Put a line aside."""
        self._held[chunk].append(line)
        self._bytes += len(line) + 48
        if self._bytes > self._limit:
            self._write()

    def _write(self) -> None:
        for chunk, lines in enumerate(self._held):
            if lines:
                with (self._folder / str(chunk)).open("ab") as file:
                    file.write(b"\n".join(lines) + b"\n")
                self._written.add(chunk)
                self._held[chunk] = []
        self._bytes = 0

    def lines(self, chunk: int) -> Sequence[bytes]:
        """The chunk's lines, in the order they were put."""
        if chunk not in self._written:
            return self._held[chunk]
        stored = (self._folder / str(chunk)).read_bytes().split(b"\n")
        stored.pop()
        return stored + self._held[chunk]


class FileSpools:
    """Spools below the system's (or a given) temporary folder."""

    def __init__(self, folder: Path | None = None, limit: int = 16 << 20) -> None:
        self._folder = folder
        self._limit = limit

    @contextmanager
    def open(self, chunks: int) -> Iterator[FileSpool]:
        """A spool of that many chunks, gone with the context."""
        with tempfile.TemporaryDirectory(prefix="joinery-spool-", dir=self._folder) as name:
            yield FileSpool(Path(name), chunks, self._limit)
