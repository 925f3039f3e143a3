"""`joinery backup` and `joinery restore`."""

import os
from pathlib import Path
from typing import Any

from adapters.postgres.dump import record_backup
from domain.secrets.keys import ActiveKeys
from entrypoints import settings
from entrypoints.backup import contents, directories
from entrypoints.backup.archive import BackupError, BackupReader, BackupWriter
from entrypoints.backup.contents import BackupManifest
from entrypoints.cli.store import CommandOptions, select_attributes
from entrypoints.factories import create_object_store
from entrypoints.settings import Settings
from ports.objects import ObjectStore


async def backup(
    path: Path, /, *, without_secret: bool = False, data_dir: Path | None = None, json: bool = False
) -> int:
    """Back up the running service: database, objects and secret.

    Args:
        path: Path of a new folder, or of a new file that ends with .tar.
        without_secret: Omit the secret. A restore then requires JOINERY_SECRET.
        data_dir: Data directory of `joinery up`, running or stopped (default: the configured servers).
        json: Print one JSON object.
    """
    with BackupWriter(path) as writer:
        if data_dir is None:
            manifest = await _create_backup(
                writer, settings.read_settings(_read_environment()), with_secret=not without_secret
            )
        else:
            async with directories.open_for_backup(data_dir) as env:
                manifest = await _create_backup(writer, settings.read_settings(env), with_secret=not without_secret)
    lines = [
        f"Backed up {manifest.rows} rows and {manifest.objects} objects ({manifest.objects_bytes / 2**20:.1f} MiB) to {path}.",
        "The backup contains the secret, which decrypts all protected values. Protect it like the service itself."
        if manifest.secret
        else "The backup does NOT contain the secret. A restore requires JOINERY_SECRET: store the secret elsewhere.",
        *_describe_missing(manifest),
    ]
    return CommandOptions(json=json).print_result({**_build_manifest_json(manifest), "backup": str(path)}, *lines)


async def _create_backup(writer: BackupWriter, configured: Settings, *, with_secret: bool) -> BackupManifest:
    """Create the backup, and record its time in the database."""
    manifest = await contents.create_backup(
        writer, configured.owner_url, _create_object_store(configured), configured.secrets, with_secret=with_secret
    )
    await record_backup(configured.owner_url)
    return manifest


async def restore(path: Path, /, *, data_dir: Path | None = None, json: bool = False) -> int:
    """Restore a backup to an empty database and object store.

    Args:
        path: Path of a backup that `joinery backup` created.
        data_dir: New data directory for `joinery up` (default: the configured servers).
        json: Print one JSON object.
    """
    reader = BackupReader(path)
    manifest = contents.verify_backup(reader)
    if data_dir is None:
        await _restore(reader, manifest, settings.read_settings(_read_environment()))
    else:
        secrets = contents.read_backup_secrets(reader, manifest) or settings.read_environment_secrets(
            _read_environment()
        )
        if not secrets:
            raise BackupError("The backup has no secret. Set JOINERY_SECRET to the secret of the backed-up service.")
        contents.check_secrets(manifest, secrets)
        async with directories.open_for_restore(data_dir, secrets) as env:
            await _restore(reader, manifest, settings.read_settings(env))
    next_step = (
        f"Start the service with `joinery up --data-dir {data_dir}`." if data_dir else "Start the service's processes."
    )
    sentence = (
        f"Restored the backup of {manifest.made_at}: {manifest.rows} rows and {manifest.objects} objects. {next_step}"
    )
    return CommandOptions(json=json).print_result(
        {**_build_manifest_json(manifest), "restored": True}, sentence, *_describe_missing(manifest)
    )


async def _restore(reader: BackupReader, manifest: BackupManifest, configured: Settings) -> None:
    """Check the secrets of the settings, then restore the backup to the configured database and object store."""
    contents.check_secrets(manifest, configured.secrets)
    await contents.restore_backup(reader, manifest, configured.owner_url, _create_object_store(configured))


def _read_environment() -> dict[str, str]:
    return settings.resolve_file_settings(os.environ)


def _create_object_store(configured: Settings) -> ObjectStore:
    return create_object_store(configured, ActiveKeys(configured.secrets))


def _build_manifest_json(manifest: BackupManifest) -> dict[str, Any]:
    """Return the result of a backup or restore as JSON."""
    return select_attributes(manifest, "joinery", "postgres", "made_at", "objects", "objects_bytes", "missing") | {
        "tables": {table.shape.name: table.rows for table in manifest.tables},
        "secret": manifest.secret is not None,
    }


def _describe_missing(manifest: BackupManifest) -> list[str]:
    """Return a line about referenced objects that the backup lacks; no line if it lacks none."""
    count = len(manifest.missing)
    return (
        [
            f"The backup lacks {count} objects, such as {manifest.missing[0]}. The database refers to them, but the object "
            "store did not contain them."
        ]
        if count
        else []
    )
