"""Process with all imports that forks confined children, each within a few milliseconds.

It has one thread and holds no tenant's data. Its parent controls it through a socket: `F` with a number and a file
descriptor forks a child that serves that socket, `K` kills the child of that number. It reports `E`, the number and the
exit status (negative for a signal) of each child that ended. It ends with its parent, and so do its children.
"""

import ctypes
import gc
import os
import resource
import selectors
import signal
import socket
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from adapters.processes.protocol import Functions, serve

ORDER = struct.Struct(">cI")
REPORT = struct.Struct(">cIi")
FORK, KILL, ENDED = b"F", b"K", b"E"

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


class ForkServer:
    """Main loop of the process.

    Args:
        control: The socket for the parent's orders.
        functions: Makes the functions of a child, by name.
        memory: The address space of each child, in bytes.

    """

    def __init__(self, control: socket.socket, functions: Callable[[], Functions], memory: int) -> None:
        self._control, self._functions, self._memory = control, functions, memory
        self._numbers: dict[int, int] = {}

    def run(self) -> None:
        """Serve until the parent is gone."""
        for ignored in (signal.SIGINT, signal.SIGTERM):
            signal.signal(ignored, signal.SIG_IGN)  # this process ends with its parent
        woken, wakes = os.pipe()
        for end in (woken, wakes):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(wakes)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        gc.collect()
        gc.freeze()  # the children share the objects that exist now
        gc.set_threshold(100_000, 20, 100)  # parsed feeds contain no reference cycles
        with selectors.DefaultSelector() as selector:
            selector.register(self._control, selectors.EVENT_READ)
            selector.register(woken, selectors.EVENT_READ)
            while True:
                ready = [key.fileobj for key, _ in selector.select()]
                if woken in ready:
                    os.read(woken, 4096)
                    self._reap()
                if self._control in ready and not self._obey():
                    break
        for pid in self._numbers:
            _kill(pid)

    def _obey(self) -> bool:
        """Execute one order; return False if the parent is gone."""
        try:
            order, descriptors, _, _ = socket.recv_fds(self._control, ORDER.size, 1)
        except ConnectionResetError:  # the parent ended with unread reports
            return False
        if len(order) < ORDER.size:
            return False
        kind, number = ORDER.unpack(order)
        if kind == FORK:
            self._fork(number, descriptors[0])
        else:
            for pid in [pid for pid, child_number in self._numbers.items() if child_number == number]:
                _kill(pid)
        return True

    def _fork(self, number: int, descriptor: int) -> None:
        parent = os.getpid()
        pid = os.fork()
        if not pid:
            self._become_child(parent, descriptor)
        os.close(descriptor)
        self._numbers[pid] = number

    def _become_child(self, parent: int, descriptor: int) -> NoReturn:
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self._control.close()
            die_with_parent(signal.SIGKILL, parent)
            _confine(self._memory)
            serve(socket.socket(fileno=descriptor), self._functions(), _allow_cpu)
            code = 0
        finally:
            os._exit(code)

    def _reap(self) -> None:
        while self._numbers:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            with suppress(OSError):
                self._control.sendall(REPORT.pack(ENDED, self._numbers.pop(pid), os.waitstatus_to_exitcode(status)))


def die_with_parent(death: signal.Signals, parent: int) -> None:
    """Have the kernel send `death` to this process when the process `parent` ends (Linux only).

    Call this after a change of user, which resets the setting. Exits at once if the parent is gone.
    """
    if _LIBC is None:
        return
    _LIBC.prctl(_PR_SET_PDEATHSIG, int(death), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def inherit_control_socket(parent: str) -> socket.socket:
    """End this process with its parent, and return the control socket that it inherits as standard input."""
    die_with_parent(signal.SIGKILL, int(parent))
    control = socket.socket(fileno=os.dup(0))
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    return control


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _confine(memory: int) -> None:
    """Limit this process's memory, and make it the first to be killed if the machine runs out of memory."""
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", "ascii")


def _allow_cpu(seconds: int) -> None:
    """Allow this process `seconds` more of CPU time, after which the kernel ends it (SIGXCPU)."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    soft = int(used.ru_utime + used.ru_stime) + max(1, seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.RLIM_INFINITY))
