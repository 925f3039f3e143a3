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
from entrypoints.settings import MIN_SECRET_LENGTH
from entrypoints.up.binaries import is_accessible

MAX_SOCKET_PATH_BYTES = 107
"""Maximum bytes of a Unix socket's path."""
MIN_FREE_BYTES = 200 * 2**20
"""Minimum free bytes of the disk for a start."""

_LONGEST_SOCKET_NAME = "/.s.PGSQL.5432.lock"


class DataDir:
    """Paths of files and folders in the data directory.

    Attributes:
        path: The absolute path of the data directory.
        postgres: The folder of the PostgreSQL cluster.
        log: The folder with one log file per program.
        objects: The folder of stored files, uploads, exports and images.
        secret_file: The file with the current and the former secrets, readable by the directory's user only.
        run_file: The JSON file with the environment of the running supervisor, readable by the directory's user only.
        restoring_file: A file that exists during a restore, and after a failed one.
        lock_file: The file that a running supervisor locks.
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


def prepare_directory(path: Path) -> DataDir:
    """Create the data directory and the folders in it; return their paths.

    Raises:
        UpError: The directory is not writable, or the disk has less than MIN_FREE_BYTES free.
    """
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
    if free < MIN_FREE_BYTES:
        raise UpError(
            f"The disk of {data.path} has only {free // 2**20} MiB free. At least {MIN_FREE_BYTES // 2**20} MiB are "
            "required. Free some space, or choose another disk with --data-dir."
        )
    return data


def check_restore_completed(data: DataDir) -> None:
    """Raise UpError if a restore into the data directory was started and did not complete."""
    if data.restoring_file.exists():
        raise UpError(
            f"Restoring a backup into {data.path} did not complete. Repeat `joinery restore` with the same --data-dir, or "
            "choose another directory."
        )


def lock_directory(data: DataDir) -> int:
    """Lock the data directory for this process; return a file descriptor. Closing the descriptor releases the lock.

    Raises UpError if another supervisor holds the lock.
    """
    descriptor = os.open(data.lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        for _ in range(5):
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            time.sleep(0.02)  # `is_locked` holds the lock briefly
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


def is_locked(data: DataDir) -> bool:
    """Return whether a supervisor runs on the data directory."""
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


def read_or_create_secret(data: DataDir) -> str:
    """Return the current secret of the data directory; create and store one at the first start."""
    if not data.secret_file.exists():
        store_secrets(data, [generate_secret()])
    return read_secrets(data)[0]


def generate_secret() -> str:
    """Return a random secret of 64 hexadecimal characters."""
    return secrets.token_hex(32)


def read_secrets(data: DataDir) -> tuple[str, ...]:
    """Return the secrets in the data directory, the current one first. Raises UpError if the file contains no valid secret."""
    try:
        lines = data.secret_file.read_text(encoding="ascii").split()
    except (OSError, ValueError):
        lines = []
    if not lines or any(len(line) < MIN_SECRET_LENGTH for line in lines):
        raise UpError(
            f"{data.secret_file} contains no valid secret. Restore this file from a backup: existing data cannot be decrypted with a new secret."
        )
    return tuple(lines)


def rotate_secret(data: DataDir) -> int:
    """Add a new secret as the current one; return the number of stored secrets. Raises UpError."""
    with _lock_secrets(data):
        kept = read_secrets(data)
        store_secrets(data, (generate_secret(), *kept))
    return len(kept) + 1


def remove_secrets(data: DataDir, former: Collection[str]) -> None:
    """Remove the secrets in `former` from the data directory. Raises UpError."""
    with _lock_secrets(data):
        store_secrets(data, [value for value in read_secrets(data) if value not in former])


@contextlib.contextmanager
def _lock_secrets(data: DataDir) -> Iterator[None]:
    """Lock the secrets of the data directory during the context, against concurrent changes by other processes."""
    descriptor = os.open(data.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def store_secrets(data: DataDir, secrets: Sequence[str]) -> None:
    """Write the secrets to the secret file atomically, one per line, the current one first."""
    write_private_file(data.secret_file, "".join(f"{line}\n" for line in secrets))


def write_private_file(path: Path, text: str) -> None:
    """Write a text file atomically, readable by the user of this process only."""
    temporary_path = path.with_name(f".{path.name}.{os.getpid()}")
    temporary_path.unlink(missing_ok=True)
    descriptor = os.open(temporary_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary_path.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def create_socket_folder(data_dir: Path, server_name: str, user_id: int | None = None) -> Path:
    """Create the private folder for the Unix socket of a server, and return its path.

    The folder is in the data directory. If that path is too long for a socket or inaccessible to `user_id`, the folder is in the
    system's temporary directory.

    Args:
        data_dir: The data directory.
        server_name: The server's name, such as `postgres`.
        user_id: The ID of the only user besides root that can access the folder; None for the user of this process.

    Raises:
        UpError: All paths are too long for a socket, or the folder belongs to another user.
    """
    digest = hashlib.sha256(os.fsencode(data_dir.resolve())).hexdigest()[:16]
    temporary_name = f"joinery-{os.geteuid()}-{digest}-{server_name}"
    local_folder = data_dir.absolute() / "run" / server_name
    for folder, parent in (
        (local_folder, data_dir),
        (Path(tempfile.gettempdir(), temporary_name), Path(tempfile.gettempdir())),
        (Path("/tmp", temporary_name), Path("/tmp")),  # noqa: S108  a private folder below it
    ):
        if len(os.fsencode(folder)) + len(_LONGEST_SOCKET_NAME) <= MAX_SOCKET_PATH_BYTES and (
            user_id is None or is_accessible(parent)
        ):
            folder.parent.mkdir(mode=0o711, exist_ok=True)
            return _create_private_folder(folder, user_id)
    raise UpError(f"The path {data_dir} is too long for a Unix socket. Choose a shorter one with --data-dir.")


def _create_private_folder(path: Path, user_id: int | None) -> Path:
    """Create a folder that only the user with the ID (None: the user of this process) can access; return `path`.

    Raises UpError if the folder belongs to another user.
    """
    path.mkdir(mode=0o700, exist_ok=True)
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid not in (os.geteuid(), user_id):
        raise UpError(f"{path} belongs to another user. Remove it, or choose another directory with --data-dir.")
    path.chmod(0o700)
    if user_id is not None:
        os.chown(path, user_id, user_id)
    return path


def write_run_file(data: DataDir, env: Mapping[str, str]) -> None:
    """Write the `JOINERY_…` variables of the service's processes to run.json, readable by this user only."""
    shared = {name: value for name, value in env.items() if name.startswith("JOINERY_")}
    write_private_file(data.run_file, json.dumps({"pid": os.getpid(), "environment": shared}, indent=2) + "\n")


def read_run_file(data_dir: Path) -> dict[str, str]:
    """Return the `JOINERY_…` variables of the `joinery up` that runs on the data directory. Raises UpError if none runs."""
    data = DataDir(data_dir)
    if not is_locked(data):
        raise UpError(f"Joinery is not running on {data.path}. Start it with `joinery up --data-dir {data.path}`.")
    try:
        running = json.loads(data.run_file.read_text(encoding="utf-8"))
        return {str(name): str(value) for name, value in running["environment"].items()}
    except PermissionError as error:
        raise UpError(
            f"{data.run_file} belongs to another user. Run this command as the user of `joinery up`."
        ) from error
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise UpError(f"Joinery on {data.path} is still starting. Try again after it has printed its URL.") from error
