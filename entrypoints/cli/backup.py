"""`joinery backup` and `joinery restore`."""

import argparse
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from adapters.postgres.dump import record_backup
from domain.secrets.keys import WorkingKeys
from entrypoints import settings
from entrypoints.backup import contents, directories
from entrypoints.backup.archive import BackupError, Reader, Writer
from entrypoints.backup.contents import Manifest
from entrypoints.cli.orgs import answered
from entrypoints.factories import objects_of
from ports.objects import Objects


async def backup(options: argparse.Namespace) -> int:
    """Copy the service to a new place."""
    with Writer(options.path) as writer:
        async with _place(options) as env:
            configured = settings.from_environment(env)
            made = await contents.make(
                writer,
                configured.owner_url,
                _objects(configured),
                configured.secrets,
                with_secret=not options.without_secret,
            )
            await record_backup(configured.owner_url)
    return answered(options, _summary(made) | {"backup": str(options.path)}, _told(options, made))


@asynccontextmanager
async def _place(options: argparse.Namespace) -> AsyncIterator[Mapping[str, str]]:
    if options.data_dir is None:
        yield settings.read_file_settings(os.environ)
    else:
        async with directories.kept(options.data_dir) as env:
            yield env


async def restore(options: argparse.Namespace) -> int:
    """Fill a new data directory, or the database and object store that the settings name."""
    reader = Reader(options.path)
    found = contents.checked(reader)
    if options.data_dir is None:
        await _restore(reader, found, settings.read_file_settings(os.environ))
    else:
        secrets = contents.secrets_of(reader, found) or settings.secrets_of(settings.read_file_settings(os.environ))
        if not secrets:
            raise BackupError("The backup has no secret; set JOINERY_SECRET to the one that this data was made with.")
        contents.check_secrets(found, secrets)
        async with directories.made(options.data_dir, secrets) as env:
            await _restore(reader, found, env)
    where = f"`joinery up --data-dir {options.data_dir}` starts it" if options.data_dir else "its processes may start"
    sentence = f"Restored {found.rows} rows of {found.made_at} and {found.objects} objects; {where}."
    return answered(options, _summary(found) | {"restored": True}, sentence + _missing(found))


async def _restore(reader: Reader, found: Manifest, env: Mapping[str, str]) -> None:
    configured = settings.from_environment(env)
    contents.check_secrets(found, configured.secrets)
    await contents.restore(reader, found, configured.owner_url, _objects(configured))


def _objects(configured: settings.Settings) -> Objects:
    return objects_of(configured, WorkingKeys(configured.secrets))


def _summary(found: Manifest) -> dict[str, object]:
    return {
        "joinery": found.joinery,
        "postgres": found.postgres,
        "made_at": found.made_at,
        "tables": {table.shape.name: table.rows for table in found.tables},
        "objects": found.objects,
        "objects_bytes": found.objects_bytes,
        "missing": list(found.missing),
        "secret": found.secret is not None,
    }


def _told(options: argparse.Namespace, made: Manifest) -> str:
    told = f"Copied {made.rows} rows and {made.objects} objects ({made.objects_bytes / 2**20:.1f} MiB) to {options.path}.\n"
    if made.secret:
        told += "The secret is in it: whoever reads the backup can open what is sealed. Keep it as safe as the service itself."
    else:
        told += "The secret is NOT in it: without JOINERY_SECRET nothing sealed can be opened and no key works. Keep that, too."
    return told + _missing(made)


def _missing(found: Manifest) -> str:
    if not found.missing:
        return ""
    return f"\n{len(found.missing)} objects that rows name were not in the object store, such as {found.missing[0]}."
