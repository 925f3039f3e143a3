"""Bringing a database to this release's schema, once, however many processes start together."""

from datetime import UTC, datetime
from importlib.resources import files

from adapters.postgres.errors import translated
from adapters.postgres.nodes.connecting import Connection, connect
from adapters.postgres.partitions import make_days
from adapters.postgres.privileges import grant, make_roles

_LOCK = 7_215_908_431
_ONE_BY_ONE = "SET LOCAL citus.multi_shard_modify_mode = 'sequential'"
"""A cluster changes its tables' parts one after the other: side by side, one transaction could not change several tables that
refer to each other. A plain PostgreSQL knows no such setting, and takes it for nobody's."""


class MigrationError(Exception):
    """The database cannot be migrated; the message says what to do."""


def available() -> list[tuple[str, str]]:
    """(name, SQL) of every migration, in order."""
    folder = files(__package__).joinpath("migrations")
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [(name.removesuffix(".sql"), folder.joinpath(name).read_text("utf-8")) for name in names]


async def applied(conninfo: str) -> list[str]:
    """Names of the migrations that the database has."""
    with translated():
        async with await connect(conninfo, "joinery migrate") as connection:
            cursor = await connection.execute("SELECT to_regclass('schema_migrations') IS NOT NULL")
            if not (await cursor.fetchone() or [False])[0]:
                return []
            cursor = await connection.execute("SELECT name FROM schema_migrations ORDER BY name")
            return [row[0] for row in await cursor.fetchall()]


async def migrate(conninfo: str) -> list[str]:
    """Apply what is missing, in one transaction, and make today's partitions; answers the names applied.

    Raises MigrationError.
    """
    with translated():
        async with await connect(conninfo, "joinery migrate") as connection:
            async with connection.transaction():
                await connection.execute(_ONE_BY_ONE)
                missing = await apply(connection)
                await grant(connection)
            await make_days(connection, datetime.now(UTC).date())
    return missing


async def apply(connection: Connection, up_to: str | None = None) -> list[str]:
    """Apply what is missing, up to a migration if one is named, in the connection's transaction. Raises MigrationError."""
    await connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
    await connection.execute(
        "CREATE TABLE IF NOT EXISTS schema_migrations (name text PRIMARY KEY, applied_at timestamptz DEFAULT now())"
    )
    cursor = await connection.execute("SELECT name FROM schema_migrations")
    present = {row[0] for row in await cursor.fetchall()}
    known = available()
    if unknown := present - {name for name, _ in known}:
        raise MigrationError(f"The database is newer than this release (it has {max(unknown)}); upgrade Joinery.")
    missing = [entry for entry in known if entry[0] not in present and (up_to is None or entry[0] <= up_to)]
    await make_roles(connection)
    for name, script in missing:
        await connection.execute(script.encode())
        await connection.execute("INSERT INTO schema_migrations (name) VALUES (%s)", (name,))
    return [name for name, _ in missing]
