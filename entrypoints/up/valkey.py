"""Starts and stops the Valkey server that comes with the package; it holds nothing that the database does not."""

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Final

from entrypoints.up import binaries
from entrypoints.up.directory import remove_if_empty, socket_directory
from entrypoints.up.errors import UpError
from entrypoints.up.process import Process, Program, length, tail

_START_TIMEOUT: Final = 20.0
_STOP_TIMEOUT: Final = 5.0


class Valkey:
    """The server of one data directory `home`: socket in its socket folder, log in `home`/log/valkey.log."""

    name = "valkey"

    def __init__(self, home: Path) -> None:
        self._home = home.absolute()
        self._log = self._home / "log" / "valkey.log"
        self._process: Process | None = None
        self._socket: Path | None = None

    def url(self) -> str:
        """Where clients connect (`unix://…`)."""
        if self._socket is None:
            raise RuntimeError("the server has not been started")
        return f"unix://{self._socket}"

    async def start(self) -> Process:
        """Start the server, empty; answer once it takes connections. Raises UpError."""
        self._log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._socket = socket_directory(self._home, self.name) / "valkey.sock"
        self._socket.unlink(missing_ok=True)
        said = length(self._log)
        process = self._process = Process(self._program(binaries.valkey_program(), self._socket))
        until = time.monotonic() + _START_TIMEOUT
        while process.ended() is None and time.monotonic() < until:
            if await _answers(self._socket):
                return process
            await asyncio.sleep(0.005)
        await process.stop(signal.SIGTERM, _STOP_TIMEOUT)
        lines = tail(self._log, said).strip().splitlines()
        raise UpError(
            f"The embedded Valkey did not start ({lines[-1] if lines else 'it said nothing'}); see {self._log}."
        )

    async def stop(self) -> None:
        """End the server; what it held is rebuilt from the database."""
        process, self._process = self._process, None
        if process is not None and process.ended() is None:
            await process.stop(signal.SIGTERM, _STOP_TIMEOUT)
        if self._socket is not None:
            remove_if_empty(self._socket.parent)

    def _program(self, server: Path, socket: Path) -> Program:
        options = {
            "--port": "0",
            "--unixsocket": str(socket),
            "--unixsocketperm": "700",
            "--save": "",
            "--appendonly": "no",
            "--daemonize": "no",
            "--dir": str(self._home),
            "--loglevel": "warning",
            "--logfile": "",
        }
        argv = [str(server), *(word for pair in options.items() for word in pair)]
        return Program(self.name, argv, {"PATH": os.defpath, "LC_ALL": "C"}, self._log, death=signal.SIGTERM)


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
