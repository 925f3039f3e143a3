"""Bringing a database to this release's schema, once, however many processes start together."""

from importlib.resources import files

from adapters.postgres.connecting import Connection, connect
from adapters.postgres.errors import translated
from adapters.postgres.pool import ROLE

_LOCK = 7_215_908_431


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
    """Apply what is missing, in one transaction; answers the names applied. Raises MigrationError."""
    with translated():
        async with await connect(conninfo, "joinery migrate") as connection, connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            await connection.execute(
                "CREATE TABLE IF NOT EXISTS schema_migrations (name text PRIMARY KEY, applied_at timestamptz DEFAULT now())"
            )
            cursor = await connection.execute("SELECT name FROM schema_migrations")
            present = {row[0] for row in await cursor.fetchall()}
            known = available()
            if unknown := present - {name for name, _ in known}:
                raise MigrationError(
                    f"The database is newer than this release (it has {max(unknown)}); upgrade Joinery."
                )
            missing = [(name, sql) for name, sql in known if name not in present]
            for name, sql in missing:
                await connection.execute(sql.encode())
                await connection.execute("INSERT INTO schema_migrations (name) VALUES (%s)", (name,))
            await _grant(connection)
    return [name for name, _ in missing]


async def _grant(connection: Connection) -> None:
    """The role that processes work as: no owner, no superuser, so that row-level security binds it."""
    await connection.execute(
        f"""DO $$ BEGIN
            IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{ROLE}') THEN CREATE ROLE {ROLE} NOLOGIN; END IF;
        EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$""".encode()
    )
    await connection.execute(
        f"GRANT {ROLE} TO CURRENT_USER; GRANT USAGE, CREATE ON SCHEMA public TO {ROLE};"
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {ROLE};"
        f"GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO {ROLE};"
        f"GRANT TEMPORARY ON DATABASE {connection.info.dbname} TO {ROLE}".encode()
    )
    await connection.execute(  # policies stand on the parents: a partition is reached through its parent only
        f"""DO $$ DECLARE part regclass; BEGIN
            FOR part IN SELECT oid FROM pg_class WHERE relispartition AND relkind = 'r'
                AND relnamespace = 'public'::regnamespace
            LOOP EXECUTE format('REVOKE ALL ON %s FROM {ROLE}', part); END LOOP;
        END $$""".encode()
    )
