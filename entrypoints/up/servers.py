"""Embedded PostgreSQL and Valkey servers, which listen on Unix sockets only."""

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Final
from urllib.parse import quote

from entrypoints.errors import UpError
from entrypoints.up import binaries
from entrypoints.up.directory import create_socket_folder
from entrypoints.up.process import ChildProcess, UpComponent, create_child_setup

POSTGRES_SETTINGS: Final[dict[str, str]] = tomllib.loads(
    files(__package__).joinpath("postgres.toml").read_text("utf-8")
)
"""Settings of the embedded PostgreSQL by name."""
_START_TIMEOUT = 60.0
_VALKEY_TIMEOUT = 20.0
_STATE_LINE = 7
"""Index of the line of postmaster.pid that contains `ready`."""
_STILL_IN_USE = ("pre-existing shared memory block", "lock file", "Address already in use", "is already in use")
NOBODY_ID = 65534
"""ID of the user and group of PostgreSQL if the supervisor is root; PostgreSQL refuses to run as root."""
WORKING_DIRECTORY = "/proc/self/cwd"
"""Path of the working directory, for a server that cannot access the directory by its name."""

_INITDB = (
    "--username=postgres",
    "--auth=trust",
    "--encoding=UTF8",
    "--locale-provider=builtin",
    "--locale=C.UTF-8",
    "--no-sync",
    "--no-instructions",
)
_ROLE_AND_DATABASE = b"CREATE ROLE joinery LOGIN CREATEDB CREATEROLE\nCREATE DATABASE joinery OWNER joinery\n"


class PostgresCluster:
    """Data directory of PostgreSQL.

    Attributes:
        path: The absolute path.
        user_id: The ID of the user that the server runs as; None for the user of this process.
        installation: The installation folder of PostgreSQL.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.user_id: int | None = None
        if os.geteuid() == 0:
            self.user_id = (self.path.stat().st_uid if self.path.exists() else 0) or NOBODY_ID
        self.installation = binaries.find_postgres_home()
        if self.user_id is not None:
            self.installation = binaries.ensure_accessible_home(self.installation)

    def get_path_argument(self, path: Path) -> str:
        """Return the path to pass to a program whose working directory is `path`.

        The result is `path`, or WORKING_DIRECTORY if the program's user cannot access the parent folder of `path`.
        """
        return str(path) if self.user_id is None or binaries.is_accessible(path.parent) else WORKING_DIRECTORY

    def get_program_path(self, name: str) -> str:
        """Return the path of the PostgreSQL program with the name, such as `initdb`."""
        return str(self.installation / "bin" / name)

    async def create_if_missing(self) -> None:
        """Create the cluster if it does not exist.

        Raises:
            UpError: The cluster belongs to another version or user, or the directory contains other files.
        """
        version = self.path / "PG_VERSION"
        if version.is_file():
            self._check_version_and_owner(version.read_text(encoding="ascii").strip())
            return
        if self.path.exists() and any(self.path.iterdir()):
            raise UpError(
                f"{self.path} is not empty and contains no database. Move its files, or choose another directory "
                "with --data-dir."
            )
        await self._create()

    def read_pid_file(self) -> list[str]:
        """Return the lines of postmaster.pid, the state file of a running server; an empty list if there is none."""
        try:
            return (self.path / "postmaster.pid").read_text(encoding="utf-8").split("\n")
        except OSError:
            return []

    def _check_version_and_owner(self, major: str) -> None:
        if major != binaries.POSTGRES_MAJOR:
            raise UpError(
                f"The database in {self.path} was created by PostgreSQL {major}, but this Joinery contains PostgreSQL "
                f"{binaries.POSTGRES_MAJOR}. Dump it with pg_dump {major} and load it into a new --data-dir, or set "
                "JOINERY_DATABASE_URL to a server of that version."
            )
        owner = self.path.stat().st_uid
        if os.geteuid() not in (0, owner):
            raise UpError(
                f"The database in {self.path} belongs to another user (ID {owner}). Start Joinery as that user, or "
                "choose another directory with --data-dir."
            )

    async def _create(self) -> None:
        """Create the cluster with the role and database `joinery`, under a temporary name until it is complete."""
        new_directory = self.path.with_name(self.path.name + ".new")
        if new_directory.exists():
            shutil.rmtree(new_directory)
        new_directory.mkdir(mode=0o700, parents=True)
        if self.user_id is not None:
            os.chown(new_directory, self.user_id, self.user_id)
        directory_argument = self.get_path_argument(new_directory)
        await self._run_program(
            [self.get_program_path("initdb"), "--pgdata", directory_argument, *_INITDB], new_directory, b""
        )
        await self._run_program(
            [self.get_program_path("postgres"), "--single", "-D", directory_argument, "postgres"],
            new_directory,
            _ROLE_AND_DATABASE,
        )
        if self.path.exists():
            self.path.rmdir()
        new_directory.rename(self.path)

    async def _run_program(self, argv: Sequence[str], directory: Path, standard_input: bytes) -> None:
        """Run a PostgreSQL program with `directory` as its working directory. Raises UpError if the program fails."""
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=build_postgres_environment(),
            preexec_fn=create_child_setup(signal.SIGKILL, user_id=self.user_id, directory=directory),
        )
        try:
            output, _ = await process.communicate(standard_input)
        finally:
            if process.returncode is None:
                process.kill()
        if process.returncode != 0:
            raise _build_start_error(self.path, output.decode("utf-8", "replace"))


def build_postgres_environment() -> dict[str, str]:
    """Return the environment with which PostgreSQL programs run."""
    return {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}


def _build_start_error(path: Path, output: str) -> UpError:
    """Return an error that summarises the output of a PostgreSQL program that failed."""
    if "No space left on device" in output or "Disk quota exceeded" in output:
        return UpError(f"The disk of {path} is full. Free some space, or choose another disk with --data-dir.")
    lines = [line for line in output.splitlines() if line.strip()]
    error_lines = [line for line in lines if "FATAL" in line or "PANIC" in line or "error:" in line]
    last_error = (error_lines or lines or ["no output"])[-1].strip()
    return UpError(
        f"The embedded PostgreSQL did not start ({last_error}). See its log {path.parent / 'log' / 'postgres.log'}."
    )


class _Server(UpComponent):
    """Embedded server whose files are in a data directory.

    Attributes:
        home: The data directory of `joinery up`.
        socket_folder: The folder of the server's Unix socket; set by `start`.
    """

    socket_folder: Path

    def __init__(self, name: str, data_dir: Path) -> None:
        self.home = data_dir.absolute()
        super().__init__(name, self.home / "log" / f"{name}.log")

    def create_folders(self, user_id: int | None = None) -> None:
        """Create the folders of the log and of the socket.

        Args:
            user_id: The ID of the user that can access the socket's folder; None for the user of this process.
        """
        self.log_path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.socket_folder = create_socket_folder(self.home, self.name, user_id)

    async def stop(self) -> None:
        """Stop the server and remove its empty socket folder."""
        await super().stop()
        if hasattr(self, "socket_folder"):
            with contextlib.suppress(OSError):
                self.socket_folder.rmdir()


async def _wait_until_serving(
    process: ChildProcess, is_serving: Callable[[], Awaitable[bool]], deadline: float
) -> bool:
    """Return True when `is_serving` returns True; return False if the process ends or the deadline passes first.

    Args:
        process: The server's process.
        is_serving: Returns whether the server accepts connections.
        deadline: The deadline in seconds of `time.monotonic`.
    """
    while process.get_exit_code() is None and time.monotonic() < deadline:
        if await is_serving():
            return True
        await asyncio.sleep(0.005)
    return False


class Postgres(_Server):
    """PostgreSQL server in the data directory of `joinery up`: databases in `postgres`, log in `log/postgres.log`.

    >>> postgres = Postgres(Path("/var/lib/joinery"))
    >>> process = await postgres.start()
    >>> postgres.build_url()
    'postgresql://joinery@/joinery?host=%2Fvar%2Flib%2Fjoinery%2Frun%2Fpostgres'
    """

    stop_signal = signal.SIGINT
    stop_seconds = 30.0

    def __init__(self, data_dir: Path, settings: Mapping[str, str] | None = None) -> None:
        super().__init__("postgres", data_dir)
        self._settings = {**POSTGRES_SETTINGS, **(settings or {})}

    def build_url(self, database: str = "joinery", role: str = "joinery") -> str:
        """Return the URL for connections to a database as a role. `joinery` owns the database `joinery`; `postgres` is the superuser."""
        return f"postgresql://{quote(role)}@/{quote(database)}?host={quote(str(self.socket_folder), safe='')}"

    async def start(self) -> ChildProcess:
        """Start the server, with a new cluster if none exists; return when it accepts connections. Raises UpError."""
        cluster = PostgresCluster(self.home / "postgres")
        self.create_folders(cluster.user_id)
        await cluster.create_if_missing()
        await _remove_leftovers(cluster, self.socket_folder)
        argv = [cluster.get_program_path("postgres"), "-D", cluster.get_path_argument(cluster.path)]
        for name, value in {**self._settings, "unix_socket_directories": str(self.socket_folder)}.items():
            argv += ["-c", f"{name}={value}"]
        deadline = time.monotonic() + _START_TIMEOUT
        while True:
            process = self.process = ChildProcess(
                argv,
                build_postgres_environment(),
                self.log_path,
                parent_death_signal=signal.SIGINT,
                user_id=cluster.user_id,
                directory=cluster.path,
            )

            async def is_serving(pid: str = str(process.pid)) -> bool:
                lines = cluster.read_pid_file()
                return lines[:1] == [pid] and [line.strip() for line in lines[_STATE_LINE:]][:1] == ["ready"]

            if await _wait_until_serving(process, is_serving, deadline):
                return process
            await process.stop(signal.SIGINT, 5.0)
            output = process.read_output()
            if time.monotonic() > deadline or not any(message in output for message in _STILL_IN_USE):
                await self.stop()
                raise _build_start_error(cluster.path, output)
            await asyncio.sleep(0.1)


async def _remove_leftovers(cluster: PostgresCluster, socket_folder: Path) -> None:
    """Stop a server that a killed supervisor has left, or remove its files if they would prevent a new start.

    This process must have locked the data directory.
    """
    first_line = "".join(cluster.read_pid_file()[:1]).strip()
    pid = int(first_line) if first_line.isdigit() else 0
    if pid and _is_server_of(pid, cluster):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGINT)
        deadline = time.monotonic() + Postgres.stop_seconds
        while _is_server_of(pid, cluster) and time.monotonic() < deadline:
            await asyncio.sleep(0.01)
    elif pid and _is_running(pid):  # another process has this ID, and PostgreSQL would take it for a server
        (cluster.path / "postmaster.pid").unlink(missing_ok=True)
        for path in socket_folder.glob(".s.PGSQL.*"):
            path.unlink(missing_ok=True)


def _is_server_of(pid: int, cluster: PostgresCluster) -> bool:
    """Return whether the process with the ID `pid` is the server of the cluster."""
    if sys.platform == "linux":
        try:
            return Path(f"/proc/{pid}/cwd").samefile(cluster.path)
        except OSError:
            return False
    return _is_running(pid)


def _is_running(pid: int) -> bool:
    """Return whether a process with the ID exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


class Valkey(_Server):
    """Valkey server without persistence, for data that the database also contains."""

    stop_seconds = 5.0

    def __init__(self, data_dir: Path) -> None:
        super().__init__("valkey", data_dir)

    def build_url(self) -> str:
        """Return the URL for connections (`unix://…`)."""
        return f"unix://{self.socket_folder / 'valkey.sock'}"

    async def start(self) -> ChildProcess:
        """Start the server, which is empty at first; return when it accepts connections. Raises UpError."""
        self.create_folders()
        socket = self.socket_folder / "valkey.sock"
        socket.unlink(missing_ok=True)
        options = {
            "--port": "0",
            "--unixsocket": str(socket),
            "--unixsocketperm": "700",
            "--save": "",
            "--appendonly": "no",
            "--daemonize": "no",
            "--dir": str(self.home),
            "--loglevel": "warning",
            "--logfile": "",
        }
        argv = [str(binaries.find_valkey_program()), *(word for pair in options.items() for word in pair)]
        env = {"PATH": os.defpath, "LC_ALL": "C"}
        process = self.process = ChildProcess(argv, env, self.log_path, parent_death_signal=signal.SIGTERM)
        if await _wait_until_serving(process, lambda: _is_responding(socket), time.monotonic() + _VALKEY_TIMEOUT):
            return process
        await self.stop()
        raise UpError(f"The embedded Valkey did not start ({process.read_last_line()}). See {self.log_path}.")


async def _is_responding(socket: Path) -> bool:
    """Return whether a Valkey server responds to PING on the Unix socket."""
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
