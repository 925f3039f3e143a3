"""The service's own processes as the supervisor runs them, and the environment that they see."""

import contextlib
import os
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from entrypoints.up.directory import DataDir, kept_secrets, secret
from entrypoints.up.process import Part, Process, Program

ARGUMENTS: Final[Mapping[str, Sequence[str]]] = {
    "api": ("api",),
    "worker": ("worker", "--for", "runs"),
    "webhooks": ("worker", "--for", "webhooks"),
    "scheduler": ("scheduler",),
    "mail": ("mail",),
}
"""Deliveries have a process of their own, so that a run that computes never holds them up."""
MAIL_PORT: Final = 2525
"""Where mail is taken, unless another program listens there."""


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """One process: its name in messages and log files, and its command line."""

    name: str
    argv: Sequence[str]


Children = Callable[[Mapping[str, str]], Sequence[ChildSpec]]


def service(env: Mapping[str, str]) -> Sequence[ChildSpec]:
    """Name `joinery …` for each process, run by this interpreter, never by modules of the current directory (-P)."""
    del env
    command = (sys.executable, "-P", "-m", "entrypoints.cli.main")
    return [ChildSpec(name, (*command, *arguments)) for name, arguments in ARGUMENTS.items()]


def environment(
    data: DataDir, port: int, *, database_url: str, redis_url: str, demo: bool, given: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Build the children's environment: what is `given` (this process's own by default), completed by `JOINERY_…`."""
    given = os.environ if given is None else given
    env = {
        "JOINERY_BASE_URL": f"http://127.0.0.1:{port}",
        "JOINERY_OBJECTS_URL": data.objects.as_uri(),
        "JOINERY_MAIL_DOMAIN": "in.joinery.example",
        "JOINERY_SECRET": "",
        "JOINERY_DRAIN_SECONDS": "0",
        "JOINERY_WORK_DIR": str(data.path / "work"),
        "JOINERY_SECRET_FORMER": "",
        "PYTHONUNBUFFERED": "1",
        **{name: value for name, value in given.items() if value},
        "JOINERY_DATABASE_URL": database_url,
        "JOINERY_MIGRATE_DATABASE_URL": "",
        "JOINERY_REDIS_URL": redis_url,
        "JOINERY_DATA_DIR": str(data.path),
        "JOINERY_HOST": "127.0.0.1",
        "JOINERY_PORT": str(port),
        "JOINERY_OPERATORS_PORT": given.get("JOINERY_OPERATORS_PORT") or str(free_port(port + 1)),
        "JOINERY_MAIL_HOST": "127.0.0.1",
        "JOINERY_MAIL_PORT": given.get("JOINERY_MAIL_PORT") or str(free_port(MAIL_PORT)),
        **({"JOINERY_DEMO": "1"} if demo else {}),
    }
    if not env["JOINERY_SECRET"]:
        env["JOINERY_SECRET"] = secret(data)
        env["JOINERY_SECRET_FORMER"] = env["JOINERY_SECRET_FORMER"] or ",".join(kept_secrets(data)[1:])
    return env


def free_port(wanted: int = 0) -> int:
    """Return the port if it is free on the loopback address, else another one."""
    for port in (wanted, 0):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):
                probe.bind(("127.0.0.1", port))
                return int(probe.getsockname()[1])
    return wanted


class Child(Part):
    """One process of the service; it says by itself (readiness) when it serves."""

    grace = 15.0

    def __init__(self, spec: ChildSpec, env: Mapping[str, str], log: Path) -> None:
        super().__init__(spec.name, log)
        self._program = Program(spec.name, spec.argv, env, log)

    async def start(self) -> Process:
        """Start it."""
        self.process = Process(self._program)
        return self.process
