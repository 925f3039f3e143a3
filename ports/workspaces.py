"""Folders on the local disk for one piece of work each."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol


class Workspaces(Protocol):
    """Where work puts files aside that nobody needs once it is over."""

    def folder(self) -> AbstractContextManager[Path]:
        """An empty folder, gone with the context; a later process removes what one that died has left."""
        ...
