"""Ties a started program to its parent, so that nothing is left running when the parent is killed."""

import ctypes
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

NOBODY: Final = 65534
"""The user and group that servers run as when the supervisor is root (PostgreSQL refuses to be root)."""

_PR_SET_PDEATHSIG: Final = 1
_LIBC: Final = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def die_with_parent(death: signal.Signals, parent: int) -> None:
    """Have the kernel send `death` to this process when the process `parent` ends (Linux only).

    Must run after a change of user, which forgets the wish. Exits at once when the parent is gone already.
    """
    if _LIBC is None:
        return
    _LIBC.prctl(_PR_SET_PDEATHSIG, int(death), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


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
