"""The data directory of `joinery up`: its layout, its lock against a second start, its secrets, its sockets, its run.json."""

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
"""Bytes that the address of a Unix socket may have."""
ROOM_NEEDED = 200 * 2**20
"""Free bytes without which starting is refused: a database that runs out of room stops in the middle of work."""

_LONGEST_SOCKET = "/.s.PGSQL.5432.lock"


class DataDir:
    """Where everything lies.

    Attributes:
        path: absolute
        postgres: the database cluster
        log: one log file for each program
        objects: snapshots, uploads, exports and images
        secret_file: key material, readable by its user only: the current secret, and the former ones after it
        run_file: what a running supervisor tells commands (JSON, readable by its user only)
        restoring_file: there while the directory is being filled from a backup, and afterwards when that was broken off
        lock_file: locked as long as a supervisor runs
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
    """Make the directory and its folders. Raises UpError when it cannot be written or its disk is full."""
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
            f"The data directory {data.path} cannot be written ({error.strerror}); make it writable for this user, or "
            "choose another with --data-dir."
        ) from error
    if free < ROOM_NEEDED:
        raise UpError(
            f"The disk of {data.path} has only {free // 2**20} MiB free and at least {ROOM_NEEDED // 2**20} MiB are "
            "needed; free some room, or choose another disk with --data-dir."
        )
    return data


def refuse_half_restored(data: DataDir) -> None:
    """Raises UpError when a restore into the directory was broken off: what is there is not the whole."""
    if data.restoring_file.exists():
        raise UpError(
            f"Restoring a backup into {data.path} was broken off; repeat `joinery restore` with the same --data-dir, or "
            "choose another directory."
        )


def lock(data: DataDir) -> int:
    """Claim the directory for this process; return the file descriptor that holds the claim until it is closed.

    Raises UpError when another supervisor holds it.
    """
    descriptor = os.open(data.lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        for _ in range(5):
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            time.sleep(0.02)  # a command that only looks (`locked`) holds it for an instant
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        holder = os.read(descriptor, 32).decode("ascii", "replace").strip()
        os.close(descriptor)
        raise UpError(
            f"Joinery is already running on {data.path} (process {holder or 'unknown'}); stop it first, or choose "
            "another directory with --data-dir."
        ) from error
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return descriptor


def locked(data: DataDir) -> bool:
    """Return whether a supervisor runs on the directory now."""
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
    """Return the directory's key material: 64 hexadecimal characters, made at the first start and kept."""
    if not data.secret_file.exists():
        keep_secrets(data, [new_secret()])
    return kept_secrets(data)[0]


def new_secret() -> str:
    """Make key material that nobody can guess."""
    return secrets.token_hex(32)


def kept_secrets(data: DataDir) -> tuple[str, ...]:
    """Return the directory's secrets, the current one first, the former ones after it. Raises UpError."""
    try:
        lines = data.secret_file.read_text(encoding="ascii").split()
    except (OSError, ValueError):
        lines = []
    if not lines or any(len(line) < SHORTEST_SECRET for line in lines):
        raise UpError(f"{data.secret_file} holds no usable secret; put the one back that this data was made with.")
    return tuple(lines)


def rotate_secret(data: DataDir) -> int:
    """Have the directory keep a new secret before those that it keeps; return how many that are. Raises UpError."""
    with _alone(data):
        kept = kept_secrets(data)
        keep_secrets(data, (new_secret(), *kept))
    return len(kept) + 1


def forget_secrets(data: DataDir, former: Collection[str]) -> None:
    """Have the directory keep its secrets but these. Raises UpError."""
    with _alone(data):
        keep_secrets(data, [one for one in kept_secrets(data) if one not in former])


@contextlib.contextmanager
def _alone(data: DataDir) -> Iterator[None]:
    """Keep others from changing what the directory keeps meanwhile."""
    descriptor = os.open(data.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def keep_secrets(data: DataDir, kept: Sequence[str]) -> None:
    """Have the directory keep these secrets, a line each, the current one first; all of them or none."""
    write_private(data.secret_file, "".join(f"{line}\n" for line in kept))


def write_private(path: Path, text: str) -> None:
    """Write a file that only this user can read, whole or not at all."""
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
    """Make a folder for the server `name`'s Unix socket under `path`, open only to the user `user` (or this one) and root.

    It is a folder of a lasting name in the system's temporary directory when `path` is too long for a socket, or when
    `user` cannot get there.
    """
    digest = hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:16]
    far = f"joinery-{os.geteuid()}-{digest}-{name}"
    near = path.absolute() / "run" / name
    for folder, above in (
        (near, path),
        (Path(tempfile.gettempdir(), far), Path(tempfile.gettempdir())),
        (Path("/tmp", far), Path("/tmp")),  # noqa: S108  a private folder below it
    ):
        if len(os.fsencode(folder)) + len(_LONGEST_SOCKET) <= SOCKET_PATH_LIMIT and (
            user is None or open_to_all(above)
        ):
            folder.parent.mkdir(mode=0o711, exist_ok=True)
            return _private(folder, user)
    raise UpError(f"The path {path} is too long for a Unix socket; choose a shorter one with --data-dir.")


def _private(path: Path, user: int | None) -> Path:
    path.mkdir(mode=0o700, exist_ok=True)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid not in (os.geteuid(), user):
        raise UpError(f"{path} belongs to someone else; remove it, or choose another directory with --data-dir.")
    path.chmod(0o700)
    if user is not None:
        os.chown(path, user, user)
    return path


def announce(data: DataDir, env: Mapping[str, str]) -> None:
    """Write the children's `JOINERY_…` variables to run.json, for this user's eyes only."""
    shared = {name: value for name, value in env.items() if name.startswith("JOINERY_")}
    write_private(data.run_file, json.dumps({"pid": os.getpid(), "environment": shared}, indent=2) + "\n")


def attach(data_dir: Path) -> dict[str, str]:
    """Return the `JOINERY_…` variables of the `joinery up` that runs on the directory. Raises UpError when none does."""
    data = DataDir(data_dir)
    if not locked(data):
        raise UpError(f"Joinery is not running on {data.path}; start it with `joinery up --data-dir {data.path}`.")
    try:
        running = json.loads(data.run_file.read_text(encoding="utf-8"))
        return {str(name): str(value) for name, value in running["environment"].items()}
    except PermissionError as error:
        raise UpError(
            f"{data.run_file} belongs to another user; run this command as the user of `joinery up`."
        ) from error
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise UpError(f"Joinery on {data.path} is still starting; try again when it has told its address.") from error
