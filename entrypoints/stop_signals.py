"""Handling of the signals that stop a process."""

import asyncio
import contextlib
import signal
from collections.abc import Iterator


@contextlib.contextmanager
def catch_stop_signals() -> Iterator[asyncio.Event]:
    """Catch SIGTERM and SIGINT during the context; each sets the event that the context yields. Main thread only."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    try:
        yield stop
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
