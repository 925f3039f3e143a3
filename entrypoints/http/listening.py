"""The sockets that are served on, and how the server is set."""

import socket
from typing import Final

from hypercorn.config import Config

from entrypoints.http.connections import SEND_SECONDS

BACKLOG: Final = 1024


def listening(host: str, port: int) -> socket.socket:
    """The socket to serve on. A client that takes nothing for SEND_SECONDS is cut off by the kernel (RFC 5482)."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.create_server((host, port), family=family, backlog=BACKLOG)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(SEND_SECONDS * 1000))
    return made


def hypercorn_config(host: str, port: int) -> Config:
    """How the server is set: no access log of its own (requests are logged by the pipeline)."""
    config = Config()
    config.bind = [f"fd://{listening(host, port).detach()}"]
    config.accesslog = None
    config.errorlog = None
    config.graceful_timeout = 10
    config.h11_max_incomplete_size = 64 * 1024
    config.include_server_header = False
    config.backlog = BACKLOG
    config.keep_alive_max_requests = 100_000
    return config
