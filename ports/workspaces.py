"""Temporary folders on the local disk."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol


class Workspaces(Protocol):
    """Creates temporary folders."""

    def create_folder(self) -> AbstractContextManager[Path]:
        """Create an empty folder, which is deleted when the context ends.

        Folders of processes that were killed are deleted by a later process.
        """
        ...
