"""Chooses the port of the vendors' feeds before the service starts, so that its processes may reach them there."""

import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from entrypoints.demo import keeping
from entrypoints.demo.errors import DemoError
from entrypoints.demo.feeds import HOST

ALLOWED: Final = "JOINERY_ALLOW_PRIVATE_HOSTS"
PORT: Final = "JOINERY_DEMO_FEEDS_PORT"


def prepare_environment(data_dir: Path) -> dict[str, str]:
    """The variables that the service is started with: where the feeds will be, and leave to reach them.

    The port is that of the start before, unless another program has taken it.
    """
    try:
        port = free_port(keeping.load(data_dir.expanduser()).port)
    except DemoError:
        port = free_port(0)
    hosts = [*filter(None, os.environ.get(ALLOWED, "").split(",")), f"{HOST}:{port}"]
    return {ALLOWED: ",".join(hosts), PORT: str(port)}


def chosen_port(env: Mapping[str, str]) -> int:
    """The port that was chosen. Raises DemoError when the service was started without `prepare_environment`."""
    text = env.get(PORT, "")
    if not text.isdigit():
        raise DemoError(
            f"{PORT} is not set, so the service would not reach the feeds; start it by `joinery up --demo`."
        )
    return int(text)


def free_port(wanted: int = 0) -> int:
    """The wanted port of this machine if no program has it, else another one. Raises DemoError."""
    for port in (wanted, 0):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise DemoError("No port is free on this machine.")
