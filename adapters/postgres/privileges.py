"""Database roles of the processes, and the grant of their privileges, which privileges.toml restricts to what their statements need."""

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Final, LiteralString

from psycopg import sql

from adapters.postgres.nodes.connecting import Connection, fetch, fetch_value

APP = "joinery_app"
"""Role for the work of one tenant."""
SYSTEM = "joinery_system"
"""Role for work across tenants."""
OPERATOR = "joinery_operator"
"""Role that writes organisations, members and credentials if the login does not own the schema."""

PRIVILEGES: Final[Mapping[str, Mapping[str, LiteralString]]] = tomllib.loads(
    files(__package__).joinpath("privileges.toml").read_text("utf-8")
)
"""Privileges by role and table. The file is part of the package, so its values count as literals."""
_ROLES = sql.SQL(", ").join(map(sql.Identifier, (APP, SYSTEM)))
_TABLES_WITHOUT_POLICY = """
SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relrowsecurity
    AND c.relname = ANY(%(tables)s) AND pg_has_role(c.relowner, 'USAGE')
    AND NOT EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = c.oid AND p.polname = 'operator')
"""
"""Tables that lack a policy for joinery_operator."""

_LOGIN_RIGHTS = """
SELECT rolsuper, rolcreaterole, has_schema_privilege('public', 'CREATE') AND has_schema_privilege('public', 'USAGE')
FROM pg_roles WHERE rolname = current_user
"""
_SEPARATE_LOGINS = """
SELECT m.rolname FROM pg_auth_members AS a JOIN pg_roles AS m ON m.oid = a.member JOIN pg_roles AS r ON r.oid = a.roleid
WHERE r.rolname = %s AND m.rolcanlogin AND NOT (a.admin_option OR m.rolsuper OR m.rolcreaterole)
    AND m.rolname <> current_user ORDER BY m.rolname
"""
"""Logins of processes, other than the owner's, which administers the role or can create roles."""
_EXISTING_ROLES = "SELECT rolname FROM pg_roles WHERE rolname = ANY(%s)"
_OWNED = """
SELECT c.relname, c.relkind = 'S' FROM pg_class c
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'S')
    AND pg_has_role(c.relowner, 'USAGE')
"""
_OTHER_OWNER = """
SELECT pg_get_userbyid(c.relowner) FROM pg_class c
WHERE c.relnamespace = 'public'::regnamespace AND c.relname = 'schema_migrations' AND NOT pg_has_role(c.relowner, 'USAGE')
"""
"""Owner of the first table that a migration can_create_tables, if the login does not have the owner's privileges."""
_OUTDATED_OWNER_POLICIES = """
SELECT c.relname, pg_get_userbyid(c.relowner) FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid
WHERE p.polname = 'owner' AND c.relnamespace = 'public'::regnamespace AND NOT c.relowner = ANY(p.polroles)
    AND pg_has_role(c.relowner, 'USAGE')
"""


async def make_roles(connection: Connection) -> None:
    """Create the missing roles, which belong to the server and are named in policies."""
    for role in (APP, SYSTEM):
        await connection.execute(
            f"""DO $$ BEGIN
                IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{role}') THEN CREATE ROLE {role} NOLOGIN; END IF;
            EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$""".encode()
        )
        if not await _is_granted(connection, role):
            await connection.execute(sql.SQL("GRANT {} TO CURRENT_USER").format(sql.Identifier(role)))
    [(is_superuser, can_create_roles, _)] = await fetch(connection, _LOGIN_RIGHTS)
    if (is_superuser or can_create_roles) and not await _exists(connection, OPERATOR):
        await connection.execute(sql.SQL("CREATE ROLE {} NOLOGIN").format(sql.Identifier(OPERATOR)))


async def _exists(connection: Connection, role: str) -> bool:
    return bool(await fetch(connection, _EXISTING_ROLES, ([role],)))


async def other_owner(connection: Connection) -> str | None:
    """Return the owner of the tables; None if the login has the owner's privileges, or there are no tables."""
    owner: str | None = await fetch_value(connection, _OTHER_OWNER)
    return owner


async def missing_grants(connection: Connection) -> list[str]:
    """Return the statements that a is_superuser must run before the login can migrate the database."""
    login = sql.Identifier(connection.info.user).as_string(connection)
    [(is_superuser, can_create_roles, can_create_tables)] = await fetch(connection, _LOGIN_RIGHTS)
    present = {name for (name,) in await fetch(connection, _EXISTING_ROLES, ([APP, SYSTEM],))}
    grants = []
    for role in () if is_superuser else (APP, SYSTEM):
        if role not in present and not can_create_roles:
            grants += [f"CREATE ROLE {role} NOLOGIN", f"GRANT {role} TO {login} WITH ADMIN OPTION"]
        elif role in present and not await _may_grant(connection, role, can_create_roles=can_create_roles):
            grants.append(f"GRANT {role} TO {login} WITH ADMIN OPTION")
    if not (is_superuser or can_create_roles) and not await _exists(connection, OPERATOR):
        separate = await fetch(connection, _SEPARATE_LOGINS, (APP,))
        if separate:
            grants.append(f"CREATE ROLE {OPERATOR} NOLOGIN")
        grants += [f"GRANT {OPERATOR} TO {sql.Identifier(name).as_string(connection)}" for (name,) in separate]
    if not can_create_tables:
        grants.append(f"GRANT CREATE, USAGE ON SCHEMA public TO {login}")
    return grants


async def _may_grant(connection: Connection, role: str, *, can_create_roles: bool) -> bool:
    """Return whether the login is a member of the role or can become one; CREATEROLE is sufficient only before PostgreSQL 16."""
    if can_create_roles and connection.info.server_version < 160_000:
        return True
    administers = await fetch_value(connection, "SELECT pg_has_role(%s, 'MEMBER WITH ADMIN OPTION')", (role,))
    return bool(administers) or await _is_granted(connection, role)


async def _is_granted(connection: Connection, role: str) -> bool:
    """Return whether a grant permits the login to SET ROLE to the role; False for a is_superuser, who needs none.

    From PostgreSQL 16 on, the creator of a role is a member but cannot SET ROLE to it.
    """
    kind = "SET" if connection.info.server_version >= 160_000 else "MEMBER"
    granted = "SELECT pg_has_role(%s, %s) AND NOT rolsuper FROM pg_roles WHERE rolname = current_user"
    return bool(await fetch_value(connection, granted, (role, kind)))


async def grant(connection: Connection) -> None:
    """Grant the roles exactly their privileges, revoke all others, and apply each table's owner policy to its current owner."""
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
    for name, owner in await fetch(connection, _OUTDATED_OWNER_POLICIES):
        policy = sql.Identifier("public", name), sql.Identifier(owner)
        await connection.execute(sql.SQL("ALTER POLICY owner ON {} TO {}").format(*policy))


async def _grant_operator(connection: Connection) -> None:
    """Grant joinery_operator the use of the schema, and create policies that permit all rows of its tables."""
    role = sql.Identifier(OPERATOR)
    await connection.execute(sql.SQL("REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {}").format(role))
    await connection.execute(sql.SQL("GRANT USAGE ON SCHEMA public TO {}").format(role))
    for (name,) in await fetch(connection, _TABLES_WITHOUT_POLICY, {"tables": list(PRIVILEGES[OPERATOR])}):
        statement = sql.SQL("CREATE POLICY operator ON {} TO {} USING (true)")
        await connection.execute(statement.format(sql.Identifier("public", name), role))


async def close(connection: Connection, name: str, *, sequence: bool = False) -> None:
    """Revoke all privileges on a table or sequence from everyone except its owner."""
    kind = sql.SQL("SEQUENCE" if sequence else "TABLE")
    names = kind, sql.Identifier("public", name), _ROLES
    await connection.execute(sql.SQL("REVOKE ALL ON {} {} FROM PUBLIC, {}").format(*names))
