"""A follower's place in a file that is never half written."""

import os
import re
import tempfile
from pathlib import Path

_CURSOR = re.compile(r"[!-~]+")


class CursorFile:
    """A CursorStore in one file. One process at a time."""

    def __init__(self, path: "str | os.PathLike[str]") -> None:
        self._path = Path(path)

    def load(self) -> str | None:
        """What was saved last; None when nothing was. Raises ValueError when the file holds no cursor, OSError."""
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            if not self._path.parent.is_dir():  # nothing could be saved, which would show only after the first page
                raise FileNotFoundError(f"There is no folder {self._path.parent} for the cursor file.") from None
            return None
        cursor = content.decode("latin-1").strip()
        if not _CURSOR.fullmatch(cursor):
            raise ValueError(f"{self._path} holds no cursor. Delete it to begin anew, or give another file.")
        return cursor

    def save(self, cursor: str) -> None:
        """Write beside, bring to disk, rename over: a crash leaves the old or the new cursor."""
        handle, beside = tempfile.mkstemp(prefix=f".{self._path.name}.", dir=self._path.parent)
        try:
            with os.fdopen(handle, "w", encoding="ascii") as file:
                file.write(cursor)
                file.flush()
                os.fsync(file.fileno())
            Path(beside).replace(self._path)
        except BaseException:
            Path(beside).unlink(missing_ok=True)
            raise
        self._keep_name()

    def _keep_name(self) -> None:
        """Bring the folder's entry to disk as well, where the system can (not on Windows)."""
        try:
            folder = os.open(self._path.parent, os.O_RDONLY)
        except OSError:
            return
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
