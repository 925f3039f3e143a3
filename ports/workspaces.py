"""Temporary folders on the local disk."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol


class Workspaces(Protocol):
    """Factory of temporary folders."""

    def folder(self) -> AbstractContextManager[Path]:
        """Create an empty folder that is deleted with the context; a later process deletes those of processes that died."""
        ...
