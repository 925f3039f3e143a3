"""Functions that test processes execute (tests/processes/test_calls.py): `python -m tests.support.parsers`."""

import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Point:
    """A value of nested kinds."""

    at: tuple[int, int]
    marks: frozenset[str] = frozenset()
    raw: bytes = b""
    name: str | None = None


class Unreadable(Exception):
    """A declared error."""

    def __init__(self, why: str, detail: str = "") -> None:
        super().__init__(why, detail)
        self.detail = detail


def mirrored(point: Point, number: int) -> Point:
    """Return another point."""
    return replace(point, at=(point.at[1], point.at[0]), name=str(number))


def querying(answer: Callable[[str], Point | None], names: list[str]) -> list[int]:
    """Query the caller about each name."""
    found = [answer(name) for name in names]
    return [-1 if point is None else point.at[0] for point in found]


def failing(way: str) -> None:
    """Raise."""
    if way == "declared":
        raise Unreadable("why", "more")
    if way == "system":
        raise PermissionError(13, "denied")
    raise ZeroDivisionError


def wild(way: str) -> bytes:
    """Misbehave in the given way."""
    match way:
        case "computing":
            pow(3, 10**30_000, 7**30_000)
        case "allocating":
            return bytes(4 << 30)
        case "crashing":
            os.kill(os.getpid(), signal.SIGSEGV)
        case "answering":
            return bytes(2 << 20)
        case "sleeping":
            time.sleep(60)
        case "lying":
            return "no bytes"  # type: ignore[return-value]
    return b""


if __name__ == "__main__":
    from adapters.processes.fork_server import ForkServer
    from tests.support import parsers  # noqa: PLW0406 - the process must find the functions by this name

    functions = (parsers.mirrored, parsers.querying, parsers.failing, parsers.wild)
    named = {f"tests.support.parsers.{function.__name__}": function for function in functions}
    control = socket.socket(fileno=os.dup(0))
    ForkServer(control, lambda: named, int(sys.argv[2]) << 20).run()
