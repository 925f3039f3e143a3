"""The data directory of `joinery up`: its layout, its lock against a second start, its secret and its sockets."""

import contextlib
import fcntl
import hashlib
import os
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from entrypoints.settings import SHORTEST_SECRET
from entrypoints.up.binaries import open_to_all
from entrypoints.up.errors import UpError

SOCKET_PATH_LIMIT: Final = 107
"""Bytes that the address of a Unix socket may have."""
ROOM_NEEDED: Final = 200 * 2**20
"""Free bytes without which starting is refused: a database that runs out of room stops in the middle of work."""

_LONGEST_SOCKET: Final = "/.s.PGSQL.5432.lock"


@dataclass(frozen=True, slots=True)
class DataDir:
    """Where everything lies; `path` is absolute."""

    path: Path

    @property
    def postgres(self) -> Path:
        """The database cluster."""
        return self.path / "postgres"

    @property
    def log(self) -> Path:
        """One log file for each program."""
        return self.path / "log"

    @property
    def objects(self) -> Path:
        """Snapshots, uploads, exports and images."""
        return self.path / "objects"

    @property
    def secret_file(self) -> Path:
        """Key material, readable by its user only: the current secret, and the former ones after it."""
        return self.path / "secret"

    @property
    def run_file(self) -> Path:
        """What a running supervisor tells commands (JSON, readable by its user only)."""
        return self.path / "run.json"

    @property
    def restoring_file(self) -> Path:
        """There while the directory is being filled from a backup, and afterwards when that was broken off."""
        return self.path / "restoring"

    @property
    def lock_file(self) -> Path:
        """Locked as long as a supervisor runs."""
        return self.path / "lock"


def prepare(path: Path) -> DataDir:
    """Make the directory and its folders. Raises UpError when it cannot be written or its disk is full."""
    data = DataDir(path.expanduser().absolute())
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
    """Claim the directory for this process; answers the file descriptor that holds the claim until it is closed.

    Raises UpError when another supervisor holds it.
    """
    descriptor = os.open(data.lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _claim(descriptor)
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


def _claim(descriptor: int) -> None:
    for _ in range(5):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.02)  # a command that only looks (`locked`) holds it for an instant
        else:
            return
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def locked(data: DataDir) -> bool:
    """Whether a supervisor runs on the directory now."""
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
    """The directory's key material: 64 hexadecimal characters, made at the first start and kept."""
    if not data.secret_file.exists():
        keep_secrets(data, [new_secret()])
    return kept_secrets(data)[0]


def new_secret() -> str:
    """Key material that nobody can guess."""
    return secrets.token_hex(32)


def kept_secrets(data: DataDir) -> tuple[str, ...]:
    """The directory's secrets, the current one first, the former ones after it. Raises UpError."""
    try:
        lines = data.secret_file.read_text(encoding="ascii").split()
    except (OSError, ValueError):
        lines = []
    if not lines or any(len(line) < SHORTEST_SECRET for line in lines):
        raise UpError(f"{data.secret_file} holds no usable secret; put the one back that this data was made with.")
    return tuple(lines)


def rotate_secret(data: DataDir) -> int:
    """Have the directory keep a new secret before those that it keeps; answers how many that are. Raises UpError."""
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
    """Nobody else changes what the directory keeps meanwhile."""
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
    """A folder for the server `name`'s Unix socket under `path`, open only to the user `user` (or this one) and root.

    It is a folder of a lasting name in the system's temporary directory when `path` is too long for a socket, or when
    `user` cannot get there.
    """
    near = path.absolute() / "run" / name
    if (user is None or open_to_all(path)) and _fits(near):
        near.parent.mkdir(mode=0o711, exist_ok=True)
        return _private(near, user)
    digest = hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:16]
    for parent in (Path(tempfile.gettempdir()), Path("/tmp")):  # noqa: S108  private folders below it
        far = parent / f"joinery-{os.geteuid()}-{digest}-{name}"
        if _fits(far) and (user is None or open_to_all(parent)):
            return _private(far, user)
    raise UpError(f"The path {path} is too long for a Unix socket; choose a shorter one with --data-dir.")


def remove_if_empty(folder: Path) -> None:
    """Leave no empty socket folder behind."""
    with contextlib.suppress(OSError):
        folder.rmdir()


def _fits(folder: Path) -> bool:
    return len(os.fsencode(folder)) + len(_LONGEST_SOCKET) <= SOCKET_PATH_LIMIT


def _private(path: Path, user: int | None) -> Path:
    path.mkdir(mode=0o700, exist_ok=True)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid not in (os.geteuid(), user):
        raise UpError(f"{path} belongs to someone else; remove it, or choose another directory with --data-dir.")
    path.chmod(0o700)
    if user is not None:
        os.chown(path, user, user)
    return path
