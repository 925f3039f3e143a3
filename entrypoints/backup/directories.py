"""Data directories of `joinery up` that are backed up or restored."""

import os
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from entrypoints.backup.archive import BackupError
from entrypoints.up import directory, service_processes
from entrypoints.up.directory import DataDir, read_run_file
from entrypoints.up.servers import Postgres


@asynccontextmanager
async def open_for_backup(path: Path) -> AsyncIterator[Mapping[str, str]]:
    """Open a data directory for a backup; yield the environment variables of its service.

    If `joinery up` does not run on the directory, the database is started for the context.

    Raises:
        BackupError: The directory contains no database.
        UpError: The database cannot be started.
    """
    data = _resolve_data_dir(path)
    if directory.is_locked(data):
        yield dict(os.environ) | read_run_file(data.path)
        return
    if not os.environ.get("JOINERY_DATABASE_URL") and not (data.postgres / "PG_VERSION").is_file():
        raise BackupError(f"There is no database in {data.path}. Use the data directory of `joinery up`.")
    directory.prepare_directory(data.path)
    directory.check_restore_completed(data)
    async with _run_database(data) as env:
        yield env


@asynccontextmanager
async def open_for_restore(path: Path, secrets: Sequence[str]) -> AsyncIterator[Mapping[str, str]]:
    """Create a data directory for a restore; yield the environment variables of its service.

    The database runs during the context. After an error in the context, only another restore can use the directory.

    Args:
        path: The new data directory.
        secrets: The operator's secrets to store in the directory, the current one first.

    Raises:
        BackupError: The directory already contains data, or `joinery up` runs on it.
        UpError: The database cannot be started.
    """
    data = _resolve_data_dir(path)
    if directory.is_locked(data):
        raise BackupError(f"Joinery is running on {data.path}. Restore to a new directory.")
    has_begun = data.restoring_file.exists()
    if not has_begun and (data.postgres.exists() or (data.objects.is_dir() and any(data.objects.iterdir()))):
        raise BackupError(f"{data.path} already contains data. Restore to a new directory.")
    directory.prepare_directory(data.path)
    directory.write_private_file(
        data.restoring_file,
        "A backup is being restored into this directory. If the restore failed, repeat it with the same --data-dir.\n",
    )
    if has_begun:
        shutil.rmtree(data.postgres, ignore_errors=True)
    directory.store_secrets(data, secrets)
    async with _run_database(data) as env:
        yield env
    data.restoring_file.unlink()


def _resolve_data_dir(path: Path) -> DataDir:
    return DataDir(path.expanduser().absolute())


@asynccontextmanager
async def _run_database(data: DataDir) -> AsyncIterator[Mapping[str, str]]:
    """Lock the data directory and run its database, unless JOINERY_DATABASE_URL names another; yield the service's environment."""
    descriptor = directory.lock_directory(data)
    postgres = Postgres(data.path)
    try:
        url = os.environ.get("JOINERY_DATABASE_URL")
        if not url:
            await postgres.start()
        yield service_processes.build_environment(
            data, 8080, database_url=url or postgres.build_url(), redis_url="", includes_demo=False
        )
    finally:
        await postgres.stop()
        os.close(descriptor)
