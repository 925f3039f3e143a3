"""Folders for one piece of work each, in one folder for each process, whose lock shows that the process is alive."""

import fcntl
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

_PREFIX = "joinery-work-"
_LOCK = "lock"
_YOUNG = 60.0
"""Seconds for which a folder without a lock may belong to a process that is starting."""
_LOG = logging.getLogger("joinery.files")


class FileWorkspaces:
    """Workspaces below the system's, or another, temporary folder; first use removes those of ended processes."""

    def __init__(self, root: Path | None = None) -> None:
        self._root = root
        self._own: Path | None = None
        self._lock: IO[bytes] | None = None

    @contextmanager
    def folder(self) -> Iterator[Path]:
        folder = Path(tempfile.mkdtemp(dir=self._opened()))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def sweep(self) -> int:
        """Remove the folders of ended processes and return their number."""
        root, swept = Path(self._root or tempfile.gettempdir()), 0
        with suppress(FileNotFoundError):
            for entry in os.scandir(root):
                if (
                    entry.name.startswith(_PREFIX)
                    and entry.is_dir(follow_symlinks=False)
                    and _is_orphaned(Path(entry.path))
                ):
                    shutil.rmtree(entry.path, ignore_errors=True)
                    swept += 1
        if swept:
            _LOG.info("removed %d folders that ended processes had left in %s", swept, root)
        return swept

    def close(self) -> None:
        """Remove this process's folder."""
        if self._own is not None:
            shutil.rmtree(self._own, ignore_errors=True)
        if self._lock is not None:
            self._lock.close()
        self._own = self._lock = None

    def _opened(self) -> Path:
        if self._own is None or not self._own.is_dir():
            if self._root is not None:
                self._root.mkdir(parents=True, exist_ok=True)
            self.sweep()
            self._own = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=self._root))
            self._lock = (self._own / _LOCK).open("wb")
            fcntl.flock(self._lock, fcntl.LOCK_EX)
        return self._own


def _is_orphaned(folder: Path) -> bool:
    """Return whether the folder's process has ended, as its lock is free."""
    try:
        found = folder.stat()
        if found.st_uid != os.geteuid():
            return False
        with (folder / _LOCK).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
    except BlockingIOError:
        return False
    except FileNotFoundError:
        with suppress(FileNotFoundError):
            return time.time() - folder.stat().st_mtime > _YOUNG  # noqa: TID251  files have the machine's times
        return False
    except OSError:
        return False
