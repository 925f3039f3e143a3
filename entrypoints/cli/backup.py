"""`joinery backup` and `joinery restore`."""

import os
from pathlib import Path
from typing import Any

from adapters.postgres.dump import record_backup
from domain.secrets.keys import WorkingKeys
from entrypoints import settings
from entrypoints.backup import contents, directories
from entrypoints.backup.archive import BackupError, Reader, Writer
from entrypoints.backup.contents import Manifest
from entrypoints.cli.store import Store, attributes
from entrypoints.factories import objects_of
from entrypoints.settings import Settings
from ports.objects import Objects


async def backup(
    path: Path, /, *, without_secret: bool = False, data_dir: Path | None = None, json: bool = False
) -> int:
    """Back up the running service: rows, objects, the secret.

    Args:
        path: a new folder, or a file that ends with .tar
        without_secret: omit the secret; a restore then requires it from elsewhere
        data_dir: the data directory of `joinery up`, running or stopped
        json: print one JSON object
    """
    with Writer(path) as writer:
        if data_dir is None:
            manifest = await _copy(writer, settings.from_environment(_environment()), with_secret=not without_secret)
        else:
            async with directories.kept(data_dir) as env:
                manifest = await _copy(writer, settings.from_environment(env), with_secret=not without_secret)
    lines = [
        f"Backed up {manifest.rows} rows and {manifest.objects} objects ({manifest.objects_bytes / 2**20:.1f} MiB) to {path}.",
        "The backup contains the secret, which decrypts all protected values. Protect it like the service itself."
        if manifest.secret
        else "The backup does NOT contain the secret. A restore requires JOINERY_SECRET: keep it, too.",
        *_describe_missing(manifest),
    ]
    return Store(json=json).answer({**_summary(manifest), "backup": str(path)}, *lines)


async def _copy(writer: Writer, configured: Settings, *, with_secret: bool) -> Manifest:
    manifest = await contents.make(
        writer, configured.owner_url, _objects(configured), configured.secrets, with_secret=with_secret
    )
    await record_backup(configured.owner_url)
    return manifest


async def restore(path: Path, /, *, data_dir: Path | None = None, json: bool = False) -> int:
    """Restore a backup to an empty database and object store.

    Args:
        path: a backup by `joinery backup`
        data_dir: a new data directory for `joinery up` (default: the configured servers)
        json: print one JSON object
    """
    reader = Reader(path)
    manifest = contents.checked(reader)
    if data_dir is None:
        await _restore(reader, manifest, settings.from_environment(_environment()))
    else:
        secrets = contents.secrets_of(reader, manifest) or settings.secrets_of(_environment())
        if not secrets:
            raise BackupError("The backup has no secret. Set JOINERY_SECRET to the secret of the backed-up service.")
        contents.check_secrets(manifest, secrets)
        async with directories.made(data_dir, secrets) as env:
            await _restore(reader, manifest, settings.from_environment(env))
    where = f"start it with `joinery up --data-dir {data_dir}`" if data_dir else "you can start its processes"
    sentence = f"Restored {manifest.rows} rows of {manifest.made_at} and {manifest.objects} objects; {where}."
    return Store(json=json).answer({**_summary(manifest), "restored": True}, sentence, *_describe_missing(manifest))


async def _restore(reader: Reader, manifest: Manifest, configured: Settings) -> None:
    contents.check_secrets(manifest, configured.secrets)
    await contents.restore(reader, manifest, configured.owner_url, _objects(configured))


def _environment() -> dict[str, str]:
    return settings.read_file_settings(os.environ)


def _objects(configured: Settings) -> Objects:
    return objects_of(configured, WorkingKeys(configured.secrets))


def _summary(manifest: Manifest) -> dict[str, Any]:
    return attributes(manifest, "joinery", "postgres", "made_at", "objects", "objects_bytes", "missing") | {
        "tables": {table.shape.name: table.rows for table in manifest.tables},
        "secret": manifest.secret is not None,
    }


def _describe_missing(manifest: Manifest) -> list[str]:
    count = len(manifest.missing)
    return (
        [f"{count} referenced objects were missing in the object store, such as {manifest.missing[0]}."]
        if count
        else []
    )
