"""Programs of this project, forked from a process with all imports, fifty times faster than a start of Python.

A forked process has its own process ID, memory, files and signals. `tests/processes` starts programs as operators do.
"""

import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any

ROOT = Path(__file__).parents[2]
COMMAND = "entrypoints.cli.main"
_IMPORTED = ("cli.processes", "api.server", "worker.service", "scheduler.service", "mail.service", "cli.mirror")
_MOST = 200_000
"""Maximum size of a message in bytes."""


class ForkedProcess(subprocess.Popen[bytes]):
    """Process that the fork server has forked, and whose exit code the server reports."""

    def __init__(self, server: "ProgramForkServer", pid: int, argv: Sequence[str]) -> None:
        self._server, self.pid, self.args = server, pid, list(argv)
        self.returncode: Any = None
        self.stdin = self.stdout = self.stderr = None
        self._child_created = False  # nothing that Popen would have to look after

    def poll(self) -> int | None:
        """Return the exit code, or None while the process runs."""
        if self.returncode is None:
            self.returncode = self._server.poll_process(self.pid)
        code: int | None = self.returncode
        return code

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the exit code. Raises TimeoutExpired."""
        until = time.monotonic() + timeout if timeout is not None else None
        while (code := self.poll()) is None:
            if until is not None and time.monotonic() > until:
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
            time.sleep(0.005)
        return code


class ProgramForkServer:
    """Fork server, started with the first process; it and its children end with this process."""

    def __init__(self) -> None:
        self._lock, self._ended = Lock(), dict[int, int]()
        self._control: socket.socket | None = None

    def start(
        self, argv: Sequence[str], env: Mapping[str, str], cwd: Path, out: Path, errors: Path | None = None
    ) -> ForkedProcess:
        """Start a process for `-m MODULE …` or `-c PROGRAM …`; its output is appended to `out`, errors to `errors` or `out`."""
        for place in (out, errors or out):
            place.touch()  # readers can open the file at once
        job = {"argv": argv, "env": env, "cwd": str(cwd), "outputs": [str(out), str(errors or out)]}
        with self._lock:
            control = self._control = self._control or _server()
            control.send(json.dumps(job).encode())
            while (pid := self._receive(control)) is None:
                pass
            self._ended.pop(pid, None)
        return ForkedProcess(self, pid, argv)

    def poll_process(self, pid: int) -> int | None:
        """Return the exit code of a process, or None while it runs."""
        with self._lock:
            control = self._control
            while control is not None and select.select([control], [], [], 0)[0]:
                self._receive(control)
            return self._ended.get(pid)

    def _receive(self, control: socket.socket) -> int | None:
        """Receive one message: the process ID of a forked process, or None for an exit."""
        message = control.recv(_MOST)
        assert message, "the fork server has ended"
        report: dict[str, int] = json.loads(message)
        if "code" in report:
            self._ended[report["pid"]] = report["code"]
            return None
        return report["pid"]


FORKS = ProgramForkServer()


def run_joinery(
    *words: object, env: Mapping[str, str] | None = None, timeout: float = 120
) -> "subprocess.CompletedProcess[str]":
    """Run a command until it ends, with the settings of `env` only."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("JOINERY_")}
    environment = kept | {"PYTHONPATH": str(ROOT)} | dict(env or {})
    argv = ("-m", COMMAND, *map(str, words))
    if sys.platform != "linux":
        return subprocess.run(
            [sys.executable, "-P", *argv], env=environment, capture_output=True, text=True, timeout=timeout, check=False
        )
    with tempfile.TemporaryDirectory() as folder:
        out, errors = Path(folder, "out"), Path(folder, "errors")
        process = FORKS.start(argv, environment, Path.cwd(), out, errors)
        try:
            process.wait(timeout)
        finally:
            process.kill()
        return subprocess.CompletedProcess(argv, process.returncode, out.read_text(), errors.read_text())


def _server() -> socket.socket:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    env = {key: value for key, value in os.environ.items() if not key.startswith("JOINERY_")}
    command = [sys.executable, "-P", "-m", "tests.support.forkserver", str(theirs.fileno())]
    subprocess.Popen(
        command, env=env | {"PYTHONPATH": str(ROOT)}, pass_fds=(theirs.fileno(),), stdin=subprocess.DEVNULL
    )
    theirs.close()
    return ours


def _forked(control: socket.socket) -> dict[str, Any]:
    """Fork for each message; return only in the forked process, with its job."""
    woken, wakes = socket.socketpair()
    for end in (woken, wakes):
        end.setblocking(False)
    signal.set_wakeup_fd(wakes.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        ready, _, _ = select.select([control, woken], [], [])
        if woken in ready:
            with suppress(BlockingIOError):
                woken.recv(4096)
            _report_exits(control)
        if control not in ready:
            continue
        message = control.recv(_MOST)
        if not message:
            os._exit(0)
        parent, pid = os.getpid(), os.fork()
        if pid:
            control.send(json.dumps({"pid": pid}).encode())
            continue
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for one in (control, woken, wakes):
            one.close()
        return json.loads(message) | {"parent": parent}


def _report_exits(control: socket.socket) -> None:
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            control.send(json.dumps({"pid": ended[0], "code": os.waitstatus_to_exitcode(ended[1])}).encode())


def _become(job: Mapping[str, Any]) -> None:
    """Set output, folder and environment of the forked process, and end it with the server."""
    from adapters.processes.fork_server import die_with_parent
    from domain.kernel.ids import reset_after_fork

    die_with_parent(signal.SIGKILL, job["parent"])
    reset_after_fork()
    for number, place in enumerate(job["outputs"], 1):
        file = os.open(place, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.dup2(file, number)
        os.close(file)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # a text file always
    os.chdir(job["cwd"])
    os.environ.clear()
    os.environ.update(job["env"])


def _run(argv: Sequence[str]) -> None:
    kind, name, *rest = argv
    sys.argv = [name if kind == "-m" else kind, *rest]
    if kind == "-c":
        exec(compile(name, "<string>", "exec"), {"__name__": "__main__"})
    elif name == COMMAND:
        sys.exit(importlib.import_module(COMMAND).main())
    else:
        runpy.run_module(name, run_name="__main__", alter_sys=True)


def main() -> None:
    """Import all modules, then fork for requests on the socket of the argument."""
    control = socket.socket(fileno=int(sys.argv[1]))
    importlib.import_module(COMMAND)
    for name in _IMPORTED:
        importlib.import_module(f"entrypoints.{name}")
    gc.collect()
    gc.freeze()
    job = _forked(control)
    _become(job)
    _run(job["argv"])


if __name__ == "__main__":
    main()
