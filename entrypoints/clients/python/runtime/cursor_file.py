"""File with the position in the change feed, which is written atomically."""

import os
import re
import tempfile
from pathlib import Path

_CURSOR = re.compile(r"[!-~]+")


class CursorFile:
    """Implementation of CursorStore in a file. Only one process at a time may use the file."""

    def __init__(self, path: "str | os.PathLike[str]") -> None:
        self._path = Path(path)

    def load(self) -> str | None:
        """Return the last saved cursor; None if the file does not exist.

        Raises:
            ValueError: The content of the file is not a cursor.
            OSError: The file cannot be read, or its folder does not exist.
        """
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            if not self._path.parent.is_dir():  # fails early: saving would fail after the first page
                raise FileNotFoundError(f"The folder {self._path.parent} of the cursor file does not exist.") from None
            return None
        cursor = content.decode("latin-1").strip()
        if not _CURSOR.fullmatch(cursor):
            raise ValueError(
                f"{self._path} contains no cursor. Delete it to start from the beginning, or use another file."
            )
        return cursor

    def save(self, cursor: str) -> None:
        """Save the cursor. After a crash, the file contains either the previous or the new cursor."""
        handle, temporary = tempfile.mkstemp(prefix=f".{self._path.name}.", dir=self._path.parent)
        try:
            with os.fdopen(handle, "w", encoding="ascii") as file:
                file.write(cursor)
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).replace(self._path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        self._sync_folder()

    def _sync_folder(self) -> None:
        """Sync the folder, so that the rename survives a crash. Some systems, such as Windows, do not support this."""
        try:
            folder = os.open(self._path.parent, os.O_RDONLY)
        except OSError:
            return
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
