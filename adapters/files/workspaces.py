"""Temporary folders of tasks, all in one folder of the process, which contains a locked file while the process runs."""

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
_MIN_ORPHAN_AGE_SECONDS = 60.0
"""Age in seconds up to which a folder without a lock file may belong to a process that is starting."""
_LOG = logging.getLogger("joinery.files")


class FileWorkspaces:
    """Temporary folders of tasks (port Workspaces in ports/workspaces.py).

    The first use deletes the folders that ended processes have left.

    Args:
        root: The folder for temporary folders; None for that of the system.
    """

    def __init__(self, root: Path | None = None) -> None:
        self._root = root
        self._process_folder: Path | None = None
        self._lock: IO[bytes] | None = None

    @contextmanager
    def create_folder(self) -> Iterator[Path]:
        folder = Path(tempfile.mkdtemp(dir=self._open_process_folder()))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def delete_orphans(self) -> int:
        """Delete the folders that ended processes have left, and return their number."""
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
            _LOG.info("removed %d folders of ended processes in %s", swept, root)
        return swept

    def close(self) -> None:
        """Delete the folder of this process."""
        if self._process_folder is not None:
            shutil.rmtree(self._process_folder, ignore_errors=True)
        if self._lock is not None:
            self._lock.close()
        self._process_folder = self._lock = None

    def _open_process_folder(self) -> Path:
        """Return the folder of this process; create and lock it at the first call."""
        if self._process_folder is None or not self._process_folder.is_dir():
            if self._root is not None:
                self._root.mkdir(parents=True, exist_ok=True)
            self.delete_orphans()
            self._process_folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=self._root))
            self._lock = (self._process_folder / _LOCK).open("wb")
            fcntl.flock(self._lock, fcntl.LOCK_EX)
        return self._process_folder


def _is_orphaned(folder: Path) -> bool:
    """Return whether the process that created the folder has ended.

    The process has ended if its lock file is not locked, or if the lock file is missing and the folder has not changed
    for _MIN_ORPHAN_AGE_SECONDS. Folders of other users are never orphaned.
    """
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
            return time.time() - folder.stat().st_mtime > _MIN_ORPHAN_AGE_SECONDS  # noqa: TID251  files have the machine's times
        return False
    except OSError:
        return False
