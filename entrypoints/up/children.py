"""Command lines, environment and ports of the service's own processes."""

import os
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from entrypoints.up.directory import DataDir, kept_secrets, secret

ARGUMENTS: Final[Mapping[str, Sequence[str]]] = {
    "api": ("api",),
    "worker": ("worker", "--for", "runs"),
    "webhooks": ("worker", "--for", "webhooks"),
    "scheduler": ("scheduler",),
    "mail": ("mail",),
}
"""Deliveries have their own process, so that a compute-intensive run never delays them."""
MAIL_PORT = 2525
"""Default port of the mail listener, unless it is in use."""


Children = Callable[[Mapping[str, str]], Mapping[str, Sequence[str]]]
"""Returns the command line of each process by name for an environment."""


def service(_: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
    """Return `joinery …` for each process, run by this interpreter without modules of the current directory (-P)."""
    command = (sys.executable, "-P", "-m", "entrypoints.cli.main")
    return {name: (*command, *arguments) for name, arguments in ARGUMENTS.items()}


def environment(
    data: DataDir, port: int, *, database_url: str, redis_url: str, demo: bool, given: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the environment of the processes: `given` (by default this process's own), completed by `JOINERY_…`."""
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


def bind(port: int) -> int:
    """Return the port if it is free on the loopback address; a free one for 0. Raises OSError or OverflowError."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", port))
        return int(probe.getsockname()[1])


def free_port(wanted: int = 0) -> int:
    """Return the port if it is free on the loopback address, else another one."""
    try:
        return bind(wanted)
    except OSError:
        return bind(0)
