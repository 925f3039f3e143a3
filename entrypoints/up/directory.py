"""Data directory of `joinery up`: layout, lock, secrets, sockets and run.json."""

import contextlib
import fcntl
import hashlib
import json
import os
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from entrypoints.errors import UpError
from entrypoints.settings import SHORTEST_SECRET
from entrypoints.up.binaries import open_to_all

SOCKET_PATH_LIMIT = 107
"""Maximum bytes of a Unix socket's path."""
ROOM_NEEDED = 200 * 2**20
"""Minimum free bytes for a start, because a database without disk space fails during work."""

_LONGEST_SOCKET = "/.s.PGSQL.5432.lock"


class DataDir:
    """Paths in the data directory.

    Attributes:
            path: the absolute path
            postgres: the database cluster
            log: one log file per program
            objects: snapshots, uploads, exports and images
            secret_file: the current secret and the former ones, readable by its user only
            run_file: data of the running supervisor for commands (JSON, readable by its user only)
            restoring_file: exists during a restore, and after a failed one
            lock_file: locked while a supervisor runs
    """

    def __init__(self, path: Path) -> None:
        path = path.expanduser().absolute()
        self.path: Final = path
        self.postgres: Final = path / "postgres"
        self.log: Final = path / "log"
        self.objects: Final = path / "objects"
        self.secret_file: Final = path / "secret"
        self.run_file: Final = path / "run.json"
        self.restoring_file: Final = path / "restoring"
        self.lock_file: Final = path / "lock"


def prepare(path: Path) -> DataDir:
    """Create the directory and its folders. Raises UpError if it is not writable or its disk is full."""
    data = DataDir(path)
    try:
        data.path.mkdir(mode=0o711 if os.geteuid() == 0 else 0o700, parents=True, exist_ok=True)
        data.log.mkdir(mode=0o700, exist_ok=True)
        data.objects.mkdir(mode=0o700, exist_ok=True)
        with tempfile.TemporaryFile(dir=data.path):
            pass
        free = shutil.disk_usage(data.path).free
    except OSError as error:
        raise UpError(
            f"The data directory {data.path} is not writable ({error.strerror}). Make it writable for this user, or "
            "choose another with --data-dir."
        ) from error
    if free < ROOM_NEEDED:
        raise UpError(
            f"The disk of {data.path} has only {free // 2**20} MiB free. At least {ROOM_NEEDED // 2**20} MiB are "
            "required. Free some space, or choose another disk with --data-dir."
        )
    return data


def refuse_half_restored(data: DataDir) -> None:
    """Raise UpError if a restore into the directory did not complete, because its data is incomplete."""
    if data.restoring_file.exists():
        raise UpError(
            f"Restoring a backup into {data.path} did not complete. Repeat `joinery restore` with the same --data-dir, or "
            "choose another directory."
        )


def lock(data: DataDir) -> int:
    """Lock the directory for this process; return the file descriptor, which holds the lock until it is closed.

    Raises UpError if another supervisor holds the lock.
    """
    descriptor = os.open(data.lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        for _ in range(5):
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            time.sleep(0.02)  # a command that checks the lock (`locked`) holds it briefly
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        holder = os.read(descriptor, 32).decode("ascii", "replace").strip()
        os.close(descriptor)
        raise UpError(
            f"Joinery is already running on {data.path} (process {holder or 'unknown'}). Stop it first, or choose "
            "another directory with --data-dir."
        ) from error
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return descriptor


def locked(data: DataDir) -> bool:
    """Return whether a supervisor runs on the directory."""
    try:
        descriptor = os.open(data.lock_file, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def secret(data: DataDir) -> str:
    """Return the directory's secret: 64 hexadecimal characters, created at the first start."""
    if not data.secret_file.exists():
        keep_secrets(data, [new_secret()])
    return kept_secrets(data)[0]


def new_secret() -> str:
    """Generate a random secret."""
    return secrets.token_hex(32)


def kept_secrets(data: DataDir) -> tuple[str, ...]:
    """Return the directory's secrets, the current one first. Raises UpError."""
    try:
        lines = data.secret_file.read_text(encoding="ascii").split()
    except (OSError, ValueError):
        lines = []
    if not lines or any(len(line) < SHORTEST_SECRET for line in lines):
        raise UpError(f"{data.secret_file} contains no valid secret. Restore the secret of this data.")
    return tuple(lines)


def rotate_secret(data: DataDir) -> int:
    """Add a new current secret; return the number of secrets. Raises UpError."""
    with _exclusive(data):
        kept = kept_secrets(data)
        keep_secrets(data, (new_secret(), *kept))
    return len(kept) + 1


def forget_secrets(data: DataDir, former: Collection[str]) -> None:
    """Remove former secrets. Raises UpError."""
    with _exclusive(data):
        keep_secrets(data, [value for value in kept_secrets(data) if value not in former])


@contextlib.contextmanager
def _exclusive(data: DataDir) -> Iterator[None]:
    """Lock the directory's secrets against concurrent changes."""
    descriptor = os.open(data.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def keep_secrets(data: DataDir, kept: Sequence[str]) -> None:
    """Store the secrets atomically, one per line, the current one first."""
    write_private(data.secret_file, "".join(f"{line}\n" for line in kept))


def write_private(path: Path, text: str) -> None:
    """Write a file atomically, readable by this user only."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def socket_directory(path: Path, name: str, user: int | None = None) -> Path:
    """Create the folder of the server's Unix socket, accessible to `user` (or this one) and root only.

    The folder is under `path`, or under a fixed name in the system's temporary directory if `path` is too long for a
    socket, or if `user` cannot access it.
    """
    digest = hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:16]
    temporary_name = f"joinery-{os.geteuid()}-{digest}-{name}"
    local_folder = path.absolute() / "run" / name
    for folder, parent in (
        (local_folder, path),
        (Path(tempfile.gettempdir(), temporary_name), Path(tempfile.gettempdir())),
        (Path("/tmp", temporary_name), Path("/tmp")),  # noqa: S108  a private folder below it
    ):
        if len(os.fsencode(folder)) + len(_LONGEST_SOCKET) <= SOCKET_PATH_LIMIT and (
            user is None or open_to_all(parent)
        ):
            folder.parent.mkdir(mode=0o711, exist_ok=True)
            return _create_private(folder, user)
    raise UpError(f"The path {path} is too long for a Unix socket. Choose a shorter one with --data-dir.")


def _create_private(path: Path, user: int | None) -> Path:
    path.mkdir(mode=0o700, exist_ok=True)
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid not in (os.geteuid(), user):
        raise UpError(f"{path} belongs to another user. Remove it, or choose another directory with --data-dir.")
    path.chmod(0o700)
    if user is not None:
        os.chown(path, user, user)
    return path


def announce(data: DataDir, env: Mapping[str, str]) -> None:
    """Write the processes' `JOINERY_…` variables to run.json, readable by this user only."""
    shared = {name: value for name, value in env.items() if name.startswith("JOINERY_")}
    write_private(data.run_file, json.dumps({"pid": os.getpid(), "environment": shared}, indent=2) + "\n")


def attach(data_dir: Path) -> dict[str, str]:
    """Return the `JOINERY_…` variables of the `joinery up` running on the directory. Raises UpError if none runs."""
    data = DataDir(data_dir)
    if not locked(data):
        raise UpError(f"Joinery is not running on {data.path}. Start it with `joinery up --data-dir {data.path}`.")
    try:
        running = json.loads(data.run_file.read_text(encoding="utf-8"))
        return {str(name): str(value) for name, value in running["environment"].items()}
    except PermissionError as error:
        raise UpError(
            f"{data.run_file} belongs to another user. Run this command as the user of `joinery up`."
        ) from error
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise UpError(f"Joinery on {data.path} is still starting. Try again when it has printed its URL.") from error
