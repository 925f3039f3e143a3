"""Command lines, environment and ports of the service's own processes."""

import os
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from entrypoints.up.directory import DataDir, read_or_create_secret, read_secrets

ARGUMENTS_BY_PROCESS: Final[Mapping[str, Sequence[str]]] = {
    "api": ("api",),
    "worker": ("worker", "--for", "runs"),
    "webhooks": ("worker", "--for", "webhooks"),
    "scheduler": ("scheduler",),
    "mail": ("mail",),
}
"""Arguments of the command `joinery` by process name. Webhooks have a separate process, so that runs never delay deliveries."""
MAIL_PORT = 2525
"""Preferred port of the mail listener; another free port is used if this one is in use."""


CommandLineBuilder = Callable[[Mapping[str, str]], Mapping[str, Sequence[str]]]
"""Function that returns the command line of each process by name, for an environment."""


def build_command_lines(_: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
    """Return the command line of each process by name, for this Python interpreter."""
    # -P: no modules of the current directory
    command = (sys.executable, "-P", "-m", "entrypoints.cli.main")
    return {name: (*command, *arguments) for name, arguments in ARGUMENTS_BY_PROCESS.items()}


def build_environment(
    data: DataDir,
    port: int,
    *,
    database_url: str,
    redis_url: str,
    includes_demo: bool,
    base_environment: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the environment of the service's processes.

    Args:
        data: The data directory.
        port: The API's port.
        database_url: The database's URL.
        redis_url: The URL of Redis.
        includes_demo: Whether JOINERY_DEMO is set to 1.
        base_environment: The environment to which `JOINERY_…` variables are added; by default that of this process.
    """
    base_environment = os.environ if base_environment is None else base_environment
    env = {
        "JOINERY_BASE_URL": f"http://127.0.0.1:{port}",
        "JOINERY_OBJECTS_URL": data.objects.as_uri(),
        "JOINERY_MAIL_DOMAIN": "in.joinery.example",
        "JOINERY_SECRET": "",
        "JOINERY_DRAIN_SECONDS": "0",
        "JOINERY_WORK_DIR": str(data.path / "work"),
        "JOINERY_SECRET_FORMER": "",
        "PYTHONUNBUFFERED": "1",
        **{name: value for name, value in base_environment.items() if value},
        "JOINERY_DATABASE_URL": database_url,
        "JOINERY_MIGRATE_DATABASE_URL": "",
        "JOINERY_REDIS_URL": redis_url,
        "JOINERY_DATA_DIR": str(data.path),
        "JOINERY_HOST": "127.0.0.1",
        "JOINERY_PORT": str(port),
        "JOINERY_OPERATORS_PORT": base_environment.get("JOINERY_OPERATORS_PORT") or str(find_free_port(port + 1)),
        "JOINERY_MAIL_HOST": "127.0.0.1",
        "JOINERY_MAIL_PORT": base_environment.get("JOINERY_MAIL_PORT") or str(find_free_port(MAIL_PORT)),
        **({"JOINERY_DEMO": "1"} if includes_demo else {}),
    }
    if not env["JOINERY_SECRET"]:
        env["JOINERY_SECRET"] = read_or_create_secret(data)
        env["JOINERY_SECRET_FORMER"] = env["JOINERY_SECRET_FORMER"] or ",".join(read_secrets(data)[1:])
    return env


def require_free_port(port: int) -> int:
    """Return `port` if it is free on the loopback address; for 0, return any free port.

    Raises:
        OSError: The port is in use or requires special privileges.
        OverflowError: The port is greater than 65535 or negative.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", port))
        return int(probe.getsockname()[1])


def find_free_port(preferred: int = 0) -> int:
    """Return the port `preferred` if that is free on the loopback address, else any free port."""
    try:
        return require_free_port(preferred)
    except OSError:
        return require_free_port(0)
