"""What a started program does first: it becomes another user, and ties itself to the supervisor."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Final

from adapters.processes.fork_server import die_with_parent

NOBODY: Final = 65534
"""The user and group that servers run as when the supervisor is root (PostgreSQL refuses to be root)."""


def before_exec(death: signal.Signals, *, user: int | None = None, directory: Path | None = None) -> Callable[[], None]:
    """What a child does between fork and exec: enter `directory`, become `user` for good, tie itself to this process."""
    parent = os.getpid()

    def prepare() -> None:
        if directory is not None:
            os.chdir(directory)
        if user is not None:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
        die_with_parent(death, parent)

    return prepare
