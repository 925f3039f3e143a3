"""Data directories of `joinery up` that are backed up or restored into."""

import os
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from entrypoints.backup.archive import BackupError
from entrypoints.up import children, directory
from entrypoints.up.directory import DataDir, attach
from entrypoints.up.servers import Postgres


@asynccontextmanager
async def kept(path: Path) -> AsyncIterator[Mapping[str, str]]:
    """Yield the environment of the service on the directory; when it is stopped, its database runs for as long as the context.

    Raises BackupError, UpError.
    """
    data = _data(path)
    if directory.locked(data):
        yield dict(os.environ) | attach(data.path)
        return
    if not os.environ.get("JOINERY_DATABASE_URL") and not (data.postgres / "PG_VERSION").is_file():
        raise BackupError(f"There is no database in {data.path}; name the directory that `joinery up` was given.")
    directory.prepare(data.path)
    directory.refuse_half_restored(data)
    async with _claimed(data) as env:
        yield env


@asynccontextmanager
async def made(path: Path, secrets: Sequence[str]) -> AsyncIterator[Mapping[str, str]]:
    """Yield the environment of a service on a new directory, with those secrets; its database runs meanwhile.

    Until the context is left without an error, nothing starts on the directory but another restore. Raises BackupError,
    UpError.
    """
    data = _data(path)
    if directory.locked(data):
        raise BackupError(f"Joinery is running on {data.path}; restore into a new directory.")
    begun = data.restoring_file.exists()
    if not begun and (data.postgres.exists() or (data.objects.is_dir() and any(data.objects.iterdir()))):
        raise BackupError(f"{data.path} holds data already; restore into a new directory.")
    directory.prepare(data.path)
    directory.write_private(data.restoring_file, "A backup is being restored into this directory.\n")
    if begun:
        shutil.rmtree(data.postgres, ignore_errors=True)
    directory.keep_secrets(data, secrets)
    async with _claimed(data) as env:
        yield env
    data.restoring_file.unlink()


def _data(path: Path) -> DataDir:
    return DataDir(path.expanduser().absolute())


@asynccontextmanager
async def _claimed(data: DataDir) -> AsyncIterator[Mapping[str, str]]:
    """Lock the directory against a start, and run its database unless the environment names another."""
    descriptor = directory.lock(data)
    postgres = Postgres(data.path)
    try:
        url = os.environ.get("JOINERY_DATABASE_URL")
        if not url:
            await postgres.start()
        yield children.environment(data, 8080, database_url=url or postgres.url(), redis_url="", demo=False)
    finally:
        await postgres.stop()
        os.close(descriptor)
