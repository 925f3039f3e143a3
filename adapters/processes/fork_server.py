"""Fork server: a process with all modules imported, which forks children with limited memory within milliseconds.

The fork server has one thread and no data of tenants. The parent controls it through a socket: `F` with a number and a
file descriptor forks a child that serves the descriptor's socket, `K` with a number kills the child of this number. The
fork server sends `E`, the number and the exit status (negative for a signal) of each child that has ended. It ends with
its parent, and the children end with it.
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

COMMAND_STRUCT = struct.Struct(">cI")
REPORT_STRUCT = struct.Struct(">cIi")
FORK, KILL, ENDED = b"F", b"K", b"E"

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


class ForkServer:
    """Main loop of the fork server.

    Args:
        control: The socket for the parent's commands.
        functions: Function that returns the functions that a child provides, by name.
        memory: The maximum address space of each child, in bytes.
    """

    def __init__(self, control: socket.socket, functions: Callable[[], Functions], memory: int) -> None:
        self._control, self._functions, self._memory = control, functions, memory
        self._number_by_pid: dict[int, int] = {}

    def run(self) -> None:
        """Execute the parent's commands until the parent has ended, and then kill all children."""
        for ignored in (signal.SIGINT, signal.SIGTERM):
            signal.signal(ignored, signal.SIG_IGN)  # this process ends with its parent
        wakeup_reader, wakeup_writer = os.pipe()
        for descriptor in (wakeup_reader, wakeup_writer):
            os.set_blocking(descriptor, False)
        signal.set_wakeup_fd(wakeup_writer)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        gc.collect()
        gc.freeze()  # the children share the objects that exist now
        gc.set_threshold(100_000, 20, 100)  # parsed feeds contain no reference cycles
        with selectors.DefaultSelector() as selector:
            selector.register(self._control, selectors.EVENT_READ)
            selector.register(wakeup_reader, selectors.EVENT_READ)
            while True:
                ready = [key.fileobj for key, _ in selector.select()]
                if wakeup_reader in ready:
                    os.read(wakeup_reader, 4096)
                    self._report_ended_children()
                if self._control in ready and not self._execute_command():
                    break
        for pid in self._number_by_pid:
            _kill(pid)

    def _execute_command(self) -> bool:
        """Receive and execute one command; return False if the parent has ended."""
        try:
            command, descriptors, _, _ = socket.recv_fds(self._control, COMMAND_STRUCT.size, 1)
        except ConnectionResetError:  # the parent ended with unread reports
            return False
        if len(command) < COMMAND_STRUCT.size:
            return False
        kind, number = COMMAND_STRUCT.unpack(command)
        if kind == FORK:
            self._fork(number, descriptors[0])
        else:
            for pid in [pid for pid, child_number in self._number_by_pid.items() if child_number == number]:
                _kill(pid)
        return True

    def _fork(self, number: int, descriptor: int) -> None:
        parent = os.getpid()
        pid = os.fork()
        if not pid:
            self._become_child(parent, descriptor)
        os.close(descriptor)
        self._number_by_pid[pid] = number

    def _become_child(self, parent: int, descriptor: int) -> NoReturn:
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self._control.close()
            die_with_parent(signal.SIGKILL, parent)
            _limit_memory(self._memory)
            serve(socket.socket(fileno=descriptor), self._functions(), _allow_cpu)
            code = 0
        finally:
            os._exit(code)

    def _report_ended_children(self) -> None:
        while self._number_by_pid:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            with suppress(OSError):
                self._control.sendall(
                    REPORT_STRUCT.pack(ENDED, self._number_by_pid.pop(pid), os.waitstatus_to_exitcode(status))
                )


def die_with_parent(signal_on_end: signal.Signals, parent_pid: int) -> None:
    """Make the kernel send the signal `signal_on_end` to this process when the process with the ID `parent_pid` ends (Linux only).

    Exits immediately if the parent has already ended. A change of user resets the setting, so call this function
    afterwards.
    """
    if _LIBC is None:
        return
    _LIBC.prctl(_PR_SET_PDEATHSIG, int(signal_on_end), 0, 0, 0)
    if os.getppid() != parent_pid:
        os._exit(1)


def exit_with_parent_and_inherit_socket(parent_pid: str) -> socket.socket:
    """Return the socket that this process inherited as standard input; end this process when the parent `parent_pid` ends."""
    die_with_parent(signal.SIGKILL, int(parent_pid))
    control = socket.socket(fileno=os.dup(0))
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    return control


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _limit_memory(memory: int) -> None:
    """Limit the address space of this process to `memory` bytes, and disable core dumps.

    If the machine runs out of memory, the kernel kills this process before others.
    """
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", "ascii")


def _allow_cpu(seconds: int) -> None:
    """Limit the further CPU time of this process to `seconds`, after which the kernel ends the process (SIGXCPU)."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    soft = int(used.ru_utime + used.ru_stime) + max(1, seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.RLIM_INFINITY))
