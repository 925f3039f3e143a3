"""Data directories of `joinery up` as source of a backup or target of a restore."""

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
    """Yield the environment of the service on the directory; if it is stopped, its database runs during the context.

    Raises BackupError, UpError.
    """
    data = _data_dir(path)
    if directory.locked(data):
        yield dict(os.environ) | attach(data.path)
        return
    if not os.environ.get("JOINERY_DATABASE_URL") and not (data.postgres / "PG_VERSION").is_file():
        raise BackupError(f"There is no database in {data.path}. Use the data directory of `joinery up`.")
    directory.prepare(data.path)
    directory.refuse_half_restored(data)
    async with _run_database(data) as env:
        yield env


@asynccontextmanager
async def made(path: Path, secrets: Sequence[str]) -> AsyncIterator[Mapping[str, str]]:
    """Yield the environment of a service on a new directory with the secrets; its database runs during the context.

    Until the context ends without an error, only another restore can start on the directory. Raises BackupError,
    UpError.
    """
    data = _data_dir(path)
    if directory.locked(data):
        raise BackupError(f"Joinery is running on {data.path}. Restore to a new directory.")
    has_begun = data.restoring_file.exists()
    if not has_begun and (data.postgres.exists() or (data.objects.is_dir() and any(data.objects.iterdir()))):
        raise BackupError(f"{data.path} already contains data. Restore to a new directory.")
    directory.prepare(data.path)
    directory.write_private(data.restoring_file, "A backup is being restored into this directory.\n")
    if has_begun:
        shutil.rmtree(data.postgres, ignore_errors=True)
    directory.keep_secrets(data, secrets)
    async with _run_database(data) as env:
        yield env
    data.restoring_file.unlink()


def _data_dir(path: Path) -> DataDir:
    return DataDir(path.expanduser().absolute())


@asynccontextmanager
async def _run_database(data: DataDir) -> AsyncIterator[Mapping[str, str]]:
    """Lock the directory, and run its database unless the environment names another one."""
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
