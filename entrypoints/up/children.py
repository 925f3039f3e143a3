"""The service's own processes as the supervisor runs them, and the environment that they see."""

import contextlib
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from entrypoints.up.directory import DataDir, kept_secrets, secret
from entrypoints.up.process import Process, Program

ARGUMENTS: Final[Mapping[str, Sequence[str]]] = {
    "api": ("api",),
    "worker": ("worker", "--for", "runs"),
    "webhooks": ("worker", "--for", "webhooks"),
    "scheduler": ("scheduler",),
    "mail": ("mail",),
}
"""Deliveries have a process of their own, so that a run that computes never holds them up."""
NAMES: Final = tuple(ARGUMENTS)
MAIL_PORT: Final = 2525
"""Where mail is taken, unless another program listens there."""
GRACE: Final = 15.0
"""Seconds that a process has to end by itself."""


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """One process: its name in messages and log files, and its command line."""

    name: str
    argv: Sequence[str]


Children = Callable[[Mapping[str, str]], Sequence[ChildSpec]]


def service(env: Mapping[str, str], names: Sequence[str] = NAMES) -> Sequence[ChildSpec]:
    """`joinery …` for each name, run by this interpreter, never by modules of the current directory (-P)."""
    del env
    command = (sys.executable, "-P", "-m", "entrypoints.cli.main")
    return [ChildSpec(name, (*command, *ARGUMENTS[name])) for name in names]


def environment(
    data: DataDir, port: int, *, database_url: str, redis_url: str, demo: bool, given: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The children's environment: what is `given` (this process's own by default), completed by `JOINERY_…`."""
    given = os.environ if given is None else given
    address = f"http://127.0.0.1:{port}"
    defaults = {
        "JOINERY_BASE_URL": address,
        "JOINERY_OBJECTS_URL": data.objects.as_uri(),
        "JOINERY_MAIL_DOMAIN": "in.joinery.example",
        "JOINERY_SECRET": "",
        "JOINERY_DRAIN_SECONDS": "0",
        "JOINERY_WORK_DIR": str(data.path / "work"),
        "JOINERY_SECRET_FORMER": "",
        "PYTHONUNBUFFERED": "1",
    }
    env = {**defaults, **{name: value for name, value in given.items() if value}}
    if not env["JOINERY_SECRET"]:
        current = secret(data)
        former = env["JOINERY_SECRET_FORMER"] or ",".join(kept_secrets(data)[1:])
        env.update(JOINERY_SECRET=current, JOINERY_SECRET_FORMER=former)
    env.update(
        JOINERY_DATABASE_URL=database_url,
        JOINERY_MIGRATE_DATABASE_URL="",
        JOINERY_REDIS_URL=redis_url,
        JOINERY_DATA_DIR=str(data.path),
        JOINERY_HOST="127.0.0.1",
        JOINERY_PORT=str(port),
        JOINERY_OPERATORS_PORT=given.get("JOINERY_OPERATORS_PORT") or str(free_port(port + 1)),
        JOINERY_MAIL_HOST="127.0.0.1",
        JOINERY_MAIL_PORT=given.get("JOINERY_MAIL_PORT") or str(free_port(MAIL_PORT)),
    )
    if demo:
        env["JOINERY_DEMO"] = "1"
    return env


def free_port(wanted: int) -> int:
    """The port if it is free on the loopback address, else another one."""
    for port in (wanted, 0):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):
                probe.bind(("127.0.0.1", port))
                return int(probe.getsockname()[1])
    return wanted


class Child:
    """One process of the service, as the keeper starts and stops it."""

    def __init__(self, spec: ChildSpec, env: Mapping[str, str], log: Path) -> None:
        self.name = spec.name
        self._program = Program(spec.name, spec.argv, env, log)
        self._process: Process | None = None

    async def start(self) -> Process:
        """Start it; it says by itself (readiness) when it serves."""
        self._process = Process(self._program)
        return self._process

    async def stop(self) -> None:
        """Let it finish what it is doing, for at most `GRACE` seconds."""
        if self._process is not None:
            await self._process.stop(signal.SIGTERM, GRACE)

    def kill(self) -> None:
        """End it now."""
        if self._process is not None:
            self._process.kill()
