"""The roles that processes work as, and granting them the rights of privileges.toml: no more than their statements need."""

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Final, LiteralString

from psycopg import sql

from adapters.postgres.nodes.connecting import Connection, fetch, fetch_value

APP = "joinery_app"
"""For the work of one tenant."""
SYSTEM = "joinery_system"
"""For work that spans tenants."""
OPERATOR = "joinery_operator"
"""The role in which requests write organisations, members and credentials when the login does not own the schema."""

PRIVILEGES: Final[Mapping[str, Mapping[str, LiteralString]]] = tomllib.loads(
    files(__package__).joinpath("privileges.toml").read_text("utf-8")
)
"""By role and table. The file ships with the package, so its values count as literal."""
_ROLES = sql.SQL(", ").join(map(sql.Identifier, (APP, SYSTEM)))
_TABLES_WITHOUT_POLICY = """
SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relrowsecurity
    AND c.relname = ANY(%(tables)s) AND pg_has_role(c.relowner, 'USAGE')
    AND NOT EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = c.oid AND p.polname = 'operator')
"""
"""Tables that joinery_operator needs a policy for."""

_LOGIN_RIGHTS = """
SELECT rolsuper, rolcreaterole, has_schema_privilege('public', 'CREATE') AND has_schema_privilege('public', 'USAGE')
FROM pg_roles WHERE rolname = current_user
"""
_SEPARATE_LOGINS = """
SELECT m.rolname FROM pg_auth_members AS a JOIN pg_roles AS m ON m.oid = a.member JOIN pg_roles AS r ON r.oid = a.roleid
WHERE r.rolname = %s AND m.rolcanlogin AND NOT (a.admin_option OR m.rolsuper OR m.rolcreaterole)
    AND m.rolname <> current_user ORDER BY m.rolname
"""
"""Logins of processes other than the owner's, which administers the role or can create roles."""
_PRESENT = "SELECT rolname FROM pg_roles WHERE rolname = ANY(%s)"
_OWNED = """
SELECT c.relname, c.relkind = 'S' FROM pg_class c
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'S')
    AND pg_has_role(c.relowner, 'USAGE')
"""
_OTHER_OWNER = """
SELECT pg_get_userbyid(c.relowner) FROM pg_class c
WHERE c.relnamespace = 'public'::regnamespace AND c.relname = 'schema_migrations' AND NOT pg_has_role(c.relowner, 'USAGE')
"""
"""The owner of the first table that a migration creates, if the login does not have the owner's rights."""
_MADE_OVER = """
SELECT c.relname, pg_get_userbyid(c.relowner) FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid
WHERE p.polname = 'owner' AND c.relnamespace = 'public'::regnamespace AND NOT c.relowner = ANY(p.polroles)
    AND pg_has_role(c.relowner, 'USAGE')
"""


async def make_roles(connection: Connection) -> None:
    """Create the roles that are missing: they belong to the server, and policies name them."""
    for role in (APP, SYSTEM):
        await connection.execute(
            f"""DO $$ BEGIN
                IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{role}') THEN CREATE ROLE {role} NOLOGIN; END IF;
            EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$""".encode()
        )
        if not await _is_granted(connection, role):
            await connection.execute(sql.SQL("GRANT {} TO CURRENT_USER").format(sql.Identifier(role)))
    [(superuser, makes_roles, _)] = await fetch(connection, _LOGIN_RIGHTS)
    if (superuser or makes_roles) and not await _exists(connection, OPERATOR):
        await connection.execute(sql.SQL("CREATE ROLE {} NOLOGIN").format(sql.Identifier(OPERATOR)))


async def _exists(connection: Connection, role: str) -> bool:
    return bool(await fetch(connection, _PRESENT, ([role],)))


async def other_owner(connection: Connection) -> str | None:
    """Return the owner of the tables; None if the login acts as the owner, or there are no tables."""
    owner: str | None = await fetch_value(connection, _OTHER_OWNER)
    return owner


async def missing_grants(connection: Connection) -> list[str]:
    """Return the statements that a superuser has to run before the login can migrate the database."""
    login = sql.Identifier(connection.info.user).as_string(connection)
    [(superuser, makes_roles, creates)] = await fetch(connection, _LOGIN_RIGHTS)
    present = {name for (name,) in await fetch(connection, _PRESENT, ([APP, SYSTEM],))}
    grants = []
    for role in () if superuser else (APP, SYSTEM):
        if role not in present and not makes_roles:
            grants += [f"CREATE ROLE {role} NOLOGIN", f"GRANT {role} TO {login} WITH ADMIN OPTION"]
        elif role in present and not await _may_grant(connection, role, makes_roles=makes_roles):
            grants.append(f"GRANT {role} TO {login} WITH ADMIN OPTION")
    if not (superuser or makes_roles) and not await _exists(connection, OPERATOR):
        separate = await fetch(connection, _SEPARATE_LOGINS, (APP,))
        if separate:
            grants.append(f"CREATE ROLE {OPERATOR} NOLOGIN")
        grants += [f"GRANT {OPERATOR} TO {sql.Identifier(name).as_string(connection)}" for (name,) in separate]
    if not creates:
        grants.append(f"GRANT CREATE, USAGE ON SCHEMA public TO {login}")
    return grants


async def _may_grant(connection: Connection, role: str, *, makes_roles: bool) -> bool:
    """Return whether the login is a member of the role or can make itself one; CREATEROLE suffices before PostgreSQL 16 alone."""
    if makes_roles and connection.info.server_version < 160_000:
        return True
    administers = await fetch_value(connection, "SELECT pg_has_role(%s, 'MEMBER WITH ADMIN OPTION')", (role,))
    return bool(administers) or await _is_granted(connection, role)


async def _is_granted(connection: Connection, role: str) -> bool:
    """Return whether a grant lets the login SET ROLE to the role; a superuser needs none.

    From PostgreSQL 16 on the creator of a role is a member of it, but cannot SET ROLE to it.
    """
    kind = "SET" if connection.info.server_version >= 160_000 else "MEMBER"
    granted = "SELECT pg_has_role(%s, %s) AND NOT rolsuper FROM pg_roles WHERE rolname = current_user"
    return bool(await fetch_value(connection, granted, (role, kind)))


async def grant(connection: Connection) -> None:
    """Give the roles, and everybody else, exactly these rights, and each table's present owner the policy that shows it all rows."""
    database = sql.Identifier(connection.info.dbname)
    for statement in (
        "REVOKE ALL ON DATABASE {database} FROM {roles}",
        "REVOKE TEMPORARY ON DATABASE {database} FROM PUBLIC",
        "GRANT TEMPORARY ON DATABASE {database} TO {roles}",
        "REVOKE ALL ON SCHEMA public FROM PUBLIC, {roles}",
        "GRANT USAGE ON SCHEMA public TO {roles}",
    ):
        await connection.execute(sql.SQL(statement).format(database=database, roles=_ROLES))
    has_operator = await _exists(connection, OPERATOR)
    if has_operator:
        await _grant_operator(connection)
    for name, sequence in await fetch(connection, _OWNED):
        await close(connection, name, sequence=sequence)
        for role, tables in PRIVILEGES.items():
            if (has_operator or role != OPERATOR) and (privileges := tables.get(name)):
                rights = sql.SQL(privileges), sql.Identifier("public", name), sql.Identifier(role)
                await connection.execute(sql.SQL("GRANT {} ON {} TO {}").format(*rights))
    for name, owner in await fetch(connection, _MADE_OVER):
        policy = sql.Identifier("public", name), sql.Identifier(owner)
        await connection.execute(sql.SQL("ALTER POLICY owner ON {} TO {}").format(*policy))


async def _grant_operator(connection: Connection) -> None:
    """Grant joinery_operator the use of the schema, and policies that show it all rows of its tables."""
    role = sql.Identifier(OPERATOR)
    await connection.execute(sql.SQL("REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {}").format(role))
    await connection.execute(sql.SQL("GRANT USAGE ON SCHEMA public TO {}").format(role))
    for (name,) in await fetch(connection, _TABLES_WITHOUT_POLICY, {"tables": list(PRIVILEGES[OPERATOR])}):
        made = sql.SQL("CREATE POLICY operator ON {} TO {} USING (true)")
        await connection.execute(made.format(sql.Identifier("public", name), role))


async def close(connection: Connection, name: str, *, sequence: bool = False) -> None:
    """Revoke every right on a table or sequence from everybody but its owner."""
    kind = sql.SQL("SEQUENCE" if sequence else "TABLE")
    closed = kind, sql.Identifier("public", name), _ROLES
    await connection.execute(sql.SQL("REVOKE ALL ON {} {} FROM PUBLIC, {}").format(*closed))
