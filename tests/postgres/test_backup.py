"""Backups between servers, PostgreSQL versions and object stores: all rows and objects arrive, or none."""

import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
import pytest_asyncio
from psycopg import sql

from adapters.files.objects import FileObjects
from adapters.postgres import schema_migrations
from adapters.postgres.dump import DatabaseSnapshot, TableShape
from adapters.postgres.maintenance import PostgresMaintenance
from adapters.postgres.nodes.pool import Pool
from adapters.postgres.schema_migrations import load_migrations, read_compatibility
from adapters.s3.objects import S3Objects
from domain.secrets.keys import SigningKeys, derive_link_key
from entrypoints.backup import contents
from entrypoints.backup.archive import BackupError, BackupReader, BackupWriter
from entrypoints.backup.contents import BackupManifest
from ports.objects import ObjectStore
from tests.contract.test_object_stores import s3_endpoint  # noqa: F401  the fixture
from tests.postgres.databases import create_database, create_temporary_database
from tests.support.postgres import database, is_available
from tests.tenancy.schema import insert_row, list_tenant_tables

pytestmark = pytest.mark.asyncio
SECRET = "a secret of at least thirty-two characters"
KEYS = [f"snapshots/org_1/live/{n}" for n in range(3)] + ["snapshots/org_1/live"]


@pytest_asyncio.fixture(params=["embedded", "server"])
async def source(request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """Return a database with a row of every table, on each server."""
    if request.param == "server" and not await is_available():
        pytest.skip("there is no server at hand")
    async with create_temporary_database("from", await database(request.param)) as address:
        await _fill_database(address)
        yield address


@pytest_asyncio.fixture
async def targets() -> AsyncIterator[list[str]]:
    """Return empty databases on all available servers."""
    servers = [await database(), *([await database("server")] if await is_available() else [])]
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(create_temporary_database("to", server, migrated=False))
            for server in servers
        ]


async def _fill_database(address: str) -> None:
    pool = Pool(address, size=1)
    await PostgresMaintenance(pool).maintain_partitions(datetime.now(UTC).date())
    await pool.close()
    async with await psycopg.AsyncConnection.connect(address, autocommit=True) as owner:
        await owner.execute(
            "INSERT INTO organisations SELECT 'org_' || n, E'N\\u00e4me \\\\. \\t', 'retailer', 'free', NULL, 'l' || n, 't' || n, "
            "now() FROM generate_series(1, 3) n"
        )
        for table in await list_tenant_tables(owner):
            if not table.is_partition:
                for n in range(3):
                    await insert_row(owner, table, f"org_{n + 1}", n > 0, n)
        for n, key in enumerate(KEYS):
            await insert_run(owner, n, key)
        await owner.execute("UPDATE plans SET monthly = 12345 WHERE code = 'free'")
        await owner.execute("UPDATE event_logs SET last = 4711, low = 7, began = 0")


async def insert_run(owner: psycopg.AsyncConnection[Any], n: int, key: str) -> None:
    """Insert a run with that snapshot."""
    [runs] = [table for table in await list_tenant_tables(owner) if table.name == "runs"]
    await insert_row(owner, runs, "org_1", True, 100 + n, {"snapshot": f"'{key}'", "status": "'running'"})


async def _read_rows(address: str) -> dict[str, list[str]]:
    """Return the rows of all tables as text, without the columns that identify histories of a log."""
    async with await psycopg.AsyncConnection.connect(address, autocommit=True) as owner:
        await owner.execute("SET timezone = 'UTC'")
        cursor = await owner.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') "
            "AND NOT relispartition AND relname NOT IN ('schema_migrations', 'log_server')"
        )
        found = {}
        for (name,) in await cursor.fetchall():
            expression = "(to_jsonb(t) - 'epoch' - 'began')::text" if name == "event_logs" else "t::text"
            rows = await owner.execute(
                sql.SQL(f"SELECT {expression} FROM {{}} t ORDER BY 1").format(sql.Identifier(name))
            )
            found[name] = [row[0] for row in await rows.fetchall()]
        return found


async def _read_epochs(address: str) -> dict[tuple[str, bool], tuple[int, int, int]]:
    """Return epoch, start of the epoch and last position of each log."""
    async with await psycopg.AsyncConnection.connect(address, autocommit=True) as owner:
        cursor = await owner.execute("SELECT org, livemode, epoch, began, last FROM event_logs")
        return {(org, livemode): (epoch, began, last) for org, livemode, epoch, began, last in await cursor.fetchall()}


async def _store_objects(objects: ObjectStore, folder: Path) -> dict[str, bytes]:
    stored = {key: secrets.token_bytes(1000 + n) for n, key in enumerate(KEYS)}
    for key, content in stored.items():
        (folder / "one").write_bytes(content)
        await objects.put_file(key, folder / "one")
    return stored


async def _create_backup(path: Path, address: str, objects: ObjectStore) -> BackupManifest:
    with BackupWriter(path) as writer:
        return await contents.create_backup(writer, address, objects, [SECRET], with_secret=True)


async def _restore_backup(path: Path, address: str, objects: ObjectStore) -> None:
    reader = BackupReader(path)
    await contents.restore_backup(reader, contents.verify_backup(reader), address, objects)


@pytest.mark.parametrize("kept_in", ["files", "s3"])
async def test_backups_are_restored_from_any_server_to_any(
    source: str, targets: list[str], tmp_path: Path, kept_in: str, request: pytest.FixtureRequest
) -> None:
    def store(name: str) -> ObjectStore:
        if kept_in == "files":
            return FileObjects(tmp_path / name, "http://localhost", SigningKeys(derive_link_key(SECRET)))
        endpoint = request.getfixturevalue("s3_endpoint")
        return S3Objects(
            f"s3://blobs/{secrets.token_hex(4)}-{name}?endpoint={endpoint}&access_key_id=a&secret_access_key=b"
        )

    objects = store("from")
    stored = await _store_objects(objects, tmp_path)
    made = await _create_backup(tmp_path / "backup.tar", source, objects)
    assert (made.objects, made.missing) == (4, [])
    for n, target in enumerate(targets):
        arrived = store(f"to-{n}")
        await _restore_backup(tmp_path / "backup.tar", target, arrived)
        assert await _read_rows(target) == await _read_rows(source)
        before, after = await _read_epochs(source), await _read_epochs(target)
        assert after.keys() == before.keys() != set()
        for log, (epoch, began, last) in after.items():
            assert epoch != before[log][0] and began == last == 4711, "events after the backup are lost"
        assert (await read_compatibility(target)).names == [name for name, _ in load_migrations()]
        for key, content in stored.items():
            assert b"".join([chunk async for chunk in arrived.read(key)]) == content
        with pytest.raises(BackupError, match="The database is not empty"):
            await _restore_backup(tmp_path / "backup.tar", target, arrived)


async def test_a_failed_load_leaves_the_database_empty(
    targets: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = await create_database("failing")
    await _fill_database(address)
    objects = FileObjects(tmp_path / "from", "http://localhost", SigningKeys(derive_link_key(SECRET)))
    await _store_objects(objects, tmp_path)
    await _create_backup(tmp_path / "backup", address, objects)
    arrived = FileObjects(tmp_path / "to", "http://localhost", SigningKeys(derive_link_key(SECRET)))

    async def fail(*_: object) -> None:
        raise OSError("the disk is gone")

    with monkeypatch.context() as patched:
        patched.setattr("adapters.postgres.dump.DumpLoader.finish", fail)
        with pytest.raises(OSError, match="the disk is gone"):
            await _restore_backup(tmp_path / "backup", targets[0], arrived)
    assert await _read_rows(targets[0]) == {}
    await _restore_backup(tmp_path / "backup", targets[0], arrived)
    assert await _read_rows(targets[0]) == await _read_rows(address)


async def test_other_bytes_under_a_key_are_not_overwritten(source: str, targets: list[str], tmp_path: Path) -> None:
    objects = FileObjects(tmp_path / "from", "http://localhost", SigningKeys(derive_link_key(SECRET)))
    await _store_objects(objects, tmp_path)
    await _create_backup(tmp_path / "backup", source, objects)
    arrived = FileObjects(tmp_path / "to", "http://localhost", SigningKeys(derive_link_key(SECRET)))
    (tmp_path / "one").write_bytes(b"somebody else's")
    await arrived.put_file(KEYS[1], tmp_path / "one")
    with pytest.raises(BackupError, match="contains another object under"):
        await _restore_backup(tmp_path / "backup", targets[0], arrived)
    assert await _read_rows(targets[0]) == {}


async def test_an_object_deleted_during_the_backup_is_included(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Retention deletes an object after the rows were read: it had been copied before."""
    objects = FileObjects(tmp_path / "from", "http://localhost", SigningKeys(derive_link_key(SECRET)))
    await _store_objects(objects, tmp_path)
    await objects.delete(KEYS[2])

    async def forgetful(
        self: DatabaseSnapshot, table: TableShape, rows: Any = DatabaseSnapshot.copy_rows
    ) -> AsyncIterator[bytes]:
        await objects.delete(KEYS[0])
        async for chunk in rows(self, table):
            yield chunk

    monkeypatch.setattr(DatabaseSnapshot, "copy_rows", forgetful)
    made = await _create_backup(tmp_path / "backup", source, objects)
    assert (made.objects, made.missing) == (3, [KEYS[2]])
    assert contents.verify_backup(BackupReader(tmp_path / "backup")) == made


async def test_a_backup_of_an_earlier_schema_is_migrated(
    targets: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backup of an unknown release is refused."""
    address = await create_database("earlier")
    await _fill_database(address)
    objects = FileObjects(tmp_path / "from", "http://localhost", SigningKeys(derive_link_key(SECRET)))
    made = await _create_backup(tmp_path / "backup", address, objects)
    later = [*load_migrations(), ("9001_later", "CREATE TABLE later (a integer)")]
    with monkeypatch.context() as patched:
        patched.setattr(schema_migrations, "load_migrations", lambda: later)
        await _restore_backup(tmp_path / "backup", targets[0], objects)
        assert (await read_compatibility(targets[0])).names == [name for name, _ in later]
        newer = await _create_backup(tmp_path / "newer", targets[0], objects)
    assert newer.migrations == [*made.migrations, "9001_later"]
    async with create_temporary_database("older", migrated=False) as older:
        with pytest.raises(BackupError, match="does not support the backup's schema 9001_later"):
            await _restore_backup(tmp_path / "newer", older, objects)
        assert await _read_rows(older) == {}


async def test_backups_of_the_last_release_are_restored_and_older_ones_refused(
    targets: list[str], tmp_path: Path
) -> None:
    address = await create_database("of_last")
    await _fill_database(address)
    objects = FileObjects(tmp_path / "from", "http://localhost", SigningKeys(derive_link_key(SECRET)))
    made = await _create_backup(tmp_path / "backup", address, objects)
    older = replace(made, migrations=["0042_instances", "0043_purges"])
    with pytest.raises(BackupError, match=r"0043_purges\) is older than this release can migrate"):
        await contents.restore_backup(BackupReader(tmp_path / "backup"), older, targets[0], objects)
    assert await _read_rows(targets[0]) == {}
    last = replace(made, migrations=[*older.migrations, "0044_first_party", *made.migrations[1:]])
    await contents.restore_backup(BackupReader(tmp_path / "backup"), last, targets[0], objects)
    assert await _read_rows(targets[0]) == await _read_rows(address)


async def test_a_failed_backup_leaves_no_file(source: str, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), BackupWriter(tmp_path / "backup") as writer:
        writer.add_file("one", b"x")
        raise RuntimeError
    assert not list(tmp_path.iterdir())
    (tmp_path / "backup.partial").mkdir()
    (tmp_path / "backup.partial" / "left").write_bytes(b"by one that was killed")
    await _create_backup(
        tmp_path / "backup",
        source,
        FileObjects(tmp_path / "from", "http://localhost", SigningKeys(derive_link_key(SECRET))),
    )
    assert not (tmp_path / "backup" / "left").exists()


async def test_names_outside_the_backup_are_refused(tmp_path: Path) -> None:
    with BackupWriter(tmp_path / "backup") as writer, pytest.raises(BackupError, match="not a valid file name"):
        writer.add_file("objects/../../outside", b"x")
