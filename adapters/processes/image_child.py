"""The process's side of converting one image: told files on a socket, it answers once and ends."""

import json
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from adapters.processes.fork_server import allow_cpu
from ports.images import ImageRefused

LONGEST: Final = 16 << 10
"""Bytes of an order or an answer; each is one line of JSON."""
Convert = Callable[[Path, Path], Sequence[tuple[str, int, int]]]
"""Writes the target, and smaller pictures beside it; answers file name, width and height of each."""


def serve(connection: socket.socket, convert: Convert) -> None:
    """Convert what the one order says."""
    order = json.loads(_line(connection))
    allow_cpu(order["cpu"])
    connection.sendall(json.dumps(_answer(order, convert)).encode() + b"\n")


def _answer(order: dict[str, Any], convert: Convert) -> dict[str, Any]:
    try:
        written = convert(Path(order["source"]), Path(order["target"]))
    except ImageRefused as error:
        return {"refused": str(error)}
    except MemoryError:
        return {"refused": "Decoding the image takes too much memory."}
    except OSError as error:
        return {"failed": f"{type(error).__name__} {error.errno}"}
    except Exception as error:
        return {"refused": f"The image cannot be decoded ({type(error).__name__})."}
    return {"written": written}


def _line(connection: socket.socket) -> bytes:
    got = b""
    while not got.endswith(b"\n") and len(got) <= LONGEST:
        part = connection.recv(LONGEST)
        if not part:
            break
        got += part
    return got
