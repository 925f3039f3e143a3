"""Starts and stops the Valkey server that comes with the package; it holds nothing that the database does not."""

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Final

from entrypoints.errors import UpError
from entrypoints.up import binaries
from entrypoints.up.directory import remove_if_empty, socket_directory
from entrypoints.up.process import Part, Process, Program

_START_TIMEOUT: Final = 20.0


class Valkey(Part):
    """The server of one data directory `home`: socket in its socket folder, log in `home`/log/valkey.log."""

    grace = 5.0

    def __init__(self, home: Path) -> None:
        self._home = home.absolute()
        super().__init__("valkey", self._home / "log" / "valkey.log")
        self._socket: Path | None = None

    def url(self) -> str:
        """Return where clients connect (`unix://…`)."""
        if self._socket is None:
            raise RuntimeError("the server has not been started")
        return f"unix://{self._socket}"

    async def start(self) -> Process:
        """Start the server, empty; return once it takes connections."""
        self.log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._socket = socket_directory(self._home, self.name) / "valkey.sock"
        self._socket.unlink(missing_ok=True)
        options = {
            "--port": "0",
            "--unixsocket": str(self._socket),
            "--unixsocketperm": "700",
            "--save": "",
            "--appendonly": "no",
            "--daemonize": "no",
            "--dir": str(self._home),
            "--loglevel": "warning",
            "--logfile": "",
        }
        argv = [str(binaries.valkey_program()), *(word for pair in options.items() for word in pair)]
        env = {"PATH": os.defpath, "LC_ALL": "C"}
        process = self.process = Process(Program(self.name, argv, env, self.log, death=signal.SIGTERM))
        until = time.monotonic() + _START_TIMEOUT
        while process.ended() is None and time.monotonic() < until:
            if await _answers(self._socket):
                return process
            await asyncio.sleep(0.005)
        await self.stop()
        raise UpError(f"The embedded Valkey did not start ({process.last_line()}); see {self.log}.")

    async def stop(self) -> None:
        """End the server; what it held is rebuilt from the database."""
        await super().stop()
        if self._socket is not None:
            remove_if_empty(self._socket.parent)


async def _answers(socket: Path) -> bool:
    try:
        reader, writer = await asyncio.open_unix_connection(str(socket))
    except OSError:
        return False
    try:
        writer.write(b"PING\r\n")
        return (await reader.readline()).startswith(b"+PONG")
    except OSError:
        return False
    finally:
        writer.close()
