"""The files of the embedded database: made once, checked before each start."""

import asyncio
import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from entrypoints.up import binaries
from entrypoints.up.errors import UpError
from entrypoints.up.lifeline import NOBODY, before_exec

HERE: Final = "/proc/self/cwd"
"""The data directory as its server names it when it may not walk there: the directory it was started in."""

_INITDB: Final = (
    "--username=postgres",
    "--auth=trust",
    "--encoding=UTF8",
    "--locale-provider=builtin",
    "--locale=C.UTF-8",
    "--no-sync",
    "--no-instructions",
)
_FIRST: Final = b"CREATE ROLE joinery LOGIN CREATEDB CREATEROLE\nCREATE DATABASE joinery OWNER joinery\n"


class Cluster:
    """A data directory of PostgreSQL and the user that its server runs as (None: this one)."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.user = _server_user(self.path)
        self.home = binaries.postgres_home()
        if self.user is not None:
            self.home = binaries.reachable_home(self.home)

    def argument(self, path: Path) -> str:
        """How the server is given the directory `path`, which it is started in."""
        return str(path) if self.user is None or binaries.open_to_all(path.parent) else HERE

    def program(self, name: str) -> str:
        """The path of one of PostgreSQL's programs."""
        return str(self.home / "bin" / name)

    async def ensure(self) -> bool:
        """Make the cluster when there is none; answers whether it was made. Raises UpError."""
        version = self.path / "PG_VERSION"
        if version.is_file():
            self._check(version.read_text(encoding="ascii").strip())
            return False
        if self.path.exists() and any(self.path.iterdir()):
            raise UpError(
                f"{self.path} is not empty and holds no database; move its files away, or choose another directory "
                "with --data-dir."
            )
        await self._make()
        return True

    def _check(self, major: str) -> None:
        if major != binaries.POSTGRES_MAJOR:
            raise UpError(
                f"The database in {self.path} was made by PostgreSQL {major}, and this Joinery brings PostgreSQL "
                f"{binaries.POSTGRES_MAJOR}; dump it with pg_dump {major} and load it into a fresh --data-dir, or set "
                "JOINERY_DATABASE_URL to a server of that version."
            )
        owner = self.path.stat().st_uid
        if os.geteuid() not in (0, owner):
            raise UpError(
                f"The database in {self.path} belongs to another user (id {owner}); start Joinery as that user, or "
                "choose another directory with --data-dir."
            )

    async def _make(self) -> None:
        fresh = self.path.with_name(self.path.name + ".new")
        if fresh.exists():
            shutil.rmtree(fresh)
        fresh.mkdir(mode=0o700, parents=True)
        if self.user is not None:
            os.chown(fresh, self.user, self.user)
        where = self.argument(fresh)
        await self._run([self.program("initdb"), "--pgdata", where, *_INITDB], fresh, b"")
        await self._run([self.program("postgres"), "--single", "-D", where, "postgres"], fresh, _FIRST)
        if self.path.exists():
            self.path.rmdir()
        fresh.rename(self.path)

    async def _run(self, argv: Sequence[str], directory: Path, text: bytes) -> None:
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment(),
            preexec_fn=before_exec(signal.SIGKILL, user=self.user, directory=directory),
        )
        try:
            output, _ = await process.communicate(text)
        finally:
            if process.returncode is None:
                process.kill()
        if process.returncode != 0:
            raise refusal(self.path, output.decode("utf-8", "replace"))


def _server_user(path: Path) -> int | None:
    if os.geteuid() != 0:
        return None
    owner = path.stat().st_uid if path.exists() else 0
    return owner or NOBODY


def environment() -> dict[str, str]:
    """All that PostgreSQL's programs see of the environment."""
    return {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}


def refusal(path: Path, output: str) -> UpError:
    """What PostgreSQL said on its way out, in one sentence."""
    if "No space left on device" in output or "Disk quota exceeded" in output:
        return UpError(f"The disk of {path} is full; free some room, or choose another disk with --data-dir.")
    lines = [line for line in output.splitlines() if line.strip()]
    complaints = [line for line in lines if "FATAL" in line or "PANIC" in line or "error:" in line]
    last = (complaints or lines or ["it said nothing"])[-1].strip()
    return UpError(
        f"The embedded PostgreSQL did not start ({last}); its log is {path.parent / 'log' / 'postgres.log'}."
    )
