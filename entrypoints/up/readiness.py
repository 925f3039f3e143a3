"""Whether the API's port is free, and when the API behind it answers."""

import asyncio
import errno
import socket
from typing import Final

from entrypoints.up.errors import UpError

PATH: Final = "/readyz"

_PAUSE: Final = 0.025
_TIMEOUT: Final = 5.0


def claim_port(port: int) -> int:
    """The port if it is free on the loopback address; a free one for 0. Raises UpError."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except PermissionError as error:
            raise UpError(f"Port {port} needs special rights; choose one above 1023 with --port.") from error
        except (OSError, OverflowError) as error:
            if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
                raise UpError(f"Port {port} is taken by another program; choose another with --port.") from error
            raise UpError(f"Port {port} cannot be used ({error}); choose another with --port.") from error
        return int(probe.getsockname()[1])


async def ready(port: int) -> None:
    """Return once `GET /readyz` on the loopback port answers 200."""
    while not await _answers(port):
        await asyncio.sleep(_PAUSE)


async def _answers(port: int) -> bool:
    try:
        async with asyncio.timeout(_TIMEOUT):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(f"GET {PATH} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode())
                status = (await reader.readline()).split()
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return False
    return len(status) > 1 and status[1] == b"200"
