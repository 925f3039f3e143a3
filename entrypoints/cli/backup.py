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
    """Copy everything, while it runs: rows, objects, the secret.

    Args:
        path: a folder to make, or a file that ends with .tar
        without_secret: leave the secret out; without it a backup is useless
        data_dir: the store of `joinery up`, running or stopped
        json: print one JSON object
    """
    with Writer(path) as writer:
        if data_dir is None:
            made = await _copy(writer, settings.from_environment(_environment()), with_secret=not without_secret)
        else:
            async with directories.kept(data_dir) as env:
                made = await _copy(writer, settings.from_environment(env), with_secret=not without_secret)
    lines = [
        f"Copied {made.rows} rows and {made.objects} objects ({made.objects_bytes / 2**20:.1f} MiB) to {path}.",
        "The secret is in it: whoever reads the backup can open what is sealed. Keep it as safe as the service itself."
        if made.secret
        else "The secret is NOT in it: without JOINERY_SECRET nothing sealed can be opened and no key works. Keep that, too.",
        *_missing(made),
    ]
    return Store(json=json).answer({**_summary(made), "backup": str(path)}, *lines)


async def _copy(writer: Writer, configured: Settings, *, with_secret: bool) -> Manifest:
    made = await contents.make(
        writer, configured.owner_url, _objects(configured), configured.secrets, with_secret=with_secret
    )
    await record_backup(configured.owner_url)
    return made


async def restore(path: Path, /, *, data_dir: Path | None = None, json: bool = False) -> int:
    """Fill an empty database and object store from a backup.

    Args:
        path: what `joinery backup` made
        data_dir: a new directory for `joinery up` (default: the settings' servers)
        json: print one JSON object
    """
    reader = Reader(path)
    found = contents.checked(reader)
    if data_dir is None:
        await _restore(reader, found, settings.from_environment(_environment()))
    else:
        secrets = contents.secrets_of(reader, found) or settings.secrets_of(_environment())
        if not secrets:
            raise BackupError("The backup has no secret; set JOINERY_SECRET to the one that this data was made with.")
        contents.check_secrets(found, secrets)
        async with directories.made(data_dir, secrets) as env:
            await _restore(reader, found, settings.from_environment(env))
    where = f"`joinery up --data-dir {data_dir}` starts it" if data_dir else "its processes may start"
    sentence = f"Restored {found.rows} rows of {found.made_at} and {found.objects} objects; {where}."
    return Store(json=json).answer({**_summary(found), "restored": True}, sentence, *_missing(found))


async def _restore(reader: Reader, found: Manifest, configured: Settings) -> None:
    contents.check_secrets(found, configured.secrets)
    await contents.restore(reader, found, configured.owner_url, _objects(configured))


def _environment() -> dict[str, str]:
    return settings.read_file_settings(os.environ)


def _objects(configured: Settings) -> Objects:
    return objects_of(configured, WorkingKeys(configured.secrets))


def _summary(found: Manifest) -> dict[str, Any]:
    return attributes(found, "joinery", "postgres", "made_at", "objects", "objects_bytes", "missing") | {
        "tables": {table.shape.name: table.rows for table in found.tables},
        "secret": found.secret is not None,
    }


def _missing(found: Manifest) -> list[str]:
    count = len(found.missing)
    return (
        [f"{count} objects that rows name were not in the object store, such as {found.missing[0]}."] if count else []
    )
