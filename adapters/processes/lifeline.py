"""Ties a process to its parent, so that nothing is left running when the parent is killed."""

import ctypes
import os
import signal
import sys
from typing import Final

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
