"""Database roles of the service's processes, and the grant of privileges to them.

privileges.toml restricts the privileges to those that the processes' statements need.
"""

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Final, LiteralString

from psycopg import sql

from adapters.postgres.nodes.connections import Connection, fetch_rows, fetch_value

APP = "joinery_app"
"""Role for statements of one tenant."""
SYSTEM = "joinery_system"
"""Role for statements across tenants."""
OPERATOR = "joinery_operator"
"""Role that writes organisations, members and credentials if the login does not own the schema."""

# the file is part of the package, so its values count as literals
PRIVILEGES: Final[Mapping[str, Mapping[str, LiteralString]]] = tomllib.loads(
    files(__package__).joinpath("privileges.toml").read_text("utf-8")
)
"""Privileges by role and table."""
_ROLES = sql.SQL(", ").join(map(sql.Identifier, (APP, SYSTEM)))
_TABLES_WITHOUT_POLICY = """
SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relrowsecurity
    AND c.relname = ANY(%(tables)s) AND pg_has_role(c.relowner, 'USAGE')
    AND NOT EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = c.oid AND p.polname = 'operator')
"""
"""Query of the tables that lack a row-level policy for joinery_operator."""

_LOGIN_RIGHTS = """
SELECT rolsuper, rolcreaterole, has_schema_privilege('public', 'CREATE') AND has_schema_privilege('public', 'USAGE')
FROM pg_roles WHERE rolname = current_user
"""
_SEPARATE_LOGINS = """
SELECT m.rolname FROM pg_auth_members AS a JOIN pg_roles AS m ON m.oid = a.member JOIN pg_roles AS r ON r.oid = a.roleid
WHERE r.rolname = %s AND m.rolcanlogin AND NOT (a.admin_option OR m.rolsuper OR m.rolcreaterole)
    AND m.rolname <> current_user ORDER BY m.rolname
"""
"""Query of the logins of processes that are not the owner and cannot administer roles."""
_EXISTING_ROLES = "SELECT rolname FROM pg_roles WHERE rolname = ANY(%s)"
_OWNED = """
SELECT c.relname, c.relkind = 'S' FROM pg_class c
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'S')
    AND pg_has_role(c.relowner, 'USAGE')
"""
_OTHER_OWNER = """
SELECT pg_get_userbyid(c.relowner) FROM pg_class c
WHERE c.relnamespace = 'public'::regnamespace AND c.relname = 'schema_migrations' AND NOT pg_has_role(c.relowner, 'USAGE')
"""
"""Query of the tables' owner, without result if the login has the owner's privileges."""
_OUTDATED_OWNER_POLICIES = """
SELECT c.relname, pg_get_userbyid(c.relowner) FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid
WHERE p.polname = 'owner' AND c.relnamespace = 'public'::regnamespace AND NOT c.relowner = ANY(p.polroles)
    AND pg_has_role(c.relowner, 'USAGE')
"""


async def create_roles(connection: Connection) -> None:
    """Create the missing roles of the processes, and grant the login membership in them.

    Roles belong to the server, not to a database, and row-level policies name them.
    """
    for role in (APP, SYSTEM):
        await connection.execute(
            f"""DO $$ BEGIN
                IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{role}') THEN CREATE ROLE {role} NOLOGIN; END IF;
            EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$""".encode()
        )
        if not await _is_granted(connection, role):
            await connection.execute(sql.SQL("GRANT {} TO CURRENT_USER").format(sql.Identifier(role)))
    [(is_superuser, can_create_roles, _)] = await fetch_rows(connection, _LOGIN_RIGHTS)
    if (is_superuser or can_create_roles) and not await _role_exists(connection, OPERATOR):
        await connection.execute(sql.SQL("CREATE ROLE {} NOLOGIN").format(sql.Identifier(OPERATOR)))


async def _role_exists(connection: Connection, role: str) -> bool:
    return bool(await fetch_rows(connection, _EXISTING_ROLES, ([role],)))


async def find_other_owner(connection: Connection) -> str | None:
    """Return the owner of the tables; None if there are no tables or the login has the owner's privileges."""
    owner: str | None = await fetch_value(connection, _OTHER_OWNER)
    return owner


async def list_missing_grants(connection: Connection) -> list[str]:
    """Return the statements that a superuser must execute before the login can migrate the database."""
    login = sql.Identifier(connection.info.user).as_string(connection)
    [(is_superuser, can_create_roles, can_create_tables)] = await fetch_rows(connection, _LOGIN_RIGHTS)
    present = {name for (name,) in await fetch_rows(connection, _EXISTING_ROLES, ([APP, SYSTEM],))}
    grants = []
    for role in () if is_superuser else (APP, SYSTEM):
        if role not in present and not can_create_roles:
            grants += [f"CREATE ROLE {role} NOLOGIN", f"GRANT {role} TO {login} WITH ADMIN OPTION"]
        elif role in present and not await _may_grant(connection, role, can_create_roles=can_create_roles):
            grants.append(f"GRANT {role} TO {login} WITH ADMIN OPTION")
    if not (is_superuser or can_create_roles) and not await _role_exists(connection, OPERATOR):
        separate = await fetch_rows(connection, _SEPARATE_LOGINS, (APP,))
        if separate:
            grants.append(f"CREATE ROLE {OPERATOR} NOLOGIN")
        grants += [f"GRANT {OPERATOR} TO {sql.Identifier(name).as_string(connection)}" for (name,) in separate]
    if not can_create_tables:
        grants.append(f"GRANT CREATE, USAGE ON SCHEMA public TO {login}")
    return grants


async def _may_grant(connection: Connection, role: str, *, can_create_roles: bool) -> bool:
    """Return whether the login is a member of the role or can grant itself membership."""
    # CREATEROLE is sufficient only before PostgreSQL 16
    if can_create_roles and connection.info.server_version < 160_000:
        return True
    administers = await fetch_value(connection, "SELECT pg_has_role(%s, 'MEMBER WITH ADMIN OPTION')", (role,))
    return bool(administers) or await _is_granted(connection, role)


async def _is_granted(connection: Connection, role: str) -> bool:
    """Return whether a grant permits the login to use SET ROLE with the role; False for a superuser.

    From PostgreSQL 16 on, the creator of a role is a member but cannot use SET ROLE with it.
    """
    kind = "SET" if connection.info.server_version >= 160_000 else "MEMBER"
    granted = "SELECT pg_has_role(%s, %s) AND NOT rolsuper FROM pg_roles WHERE rolname = current_user"
    return bool(await fetch_value(connection, granted, (role, kind)))


async def grant_privileges(connection: Connection) -> None:
    """Grant each role exactly its privileges, and revoke all others.

    The row-level policy `owner` of each table is set to the table's current owner.
    """
    database = sql.Identifier(connection.info.dbname)
    for statement in (
        "REVOKE ALL ON DATABASE {database} FROM {roles}",
        "REVOKE TEMPORARY ON DATABASE {database} FROM PUBLIC",
        "GRANT TEMPORARY ON DATABASE {database} TO {roles}",
        "REVOKE ALL ON SCHEMA public FROM PUBLIC, {roles}",
        "GRANT USAGE ON SCHEMA public TO {roles}",
    ):
        await connection.execute(sql.SQL(statement).format(database=database, roles=_ROLES))
    has_operator = await _role_exists(connection, OPERATOR)
    if has_operator:
        await _grant_operator(connection)
    for name, is_sequence in await fetch_rows(connection, _OWNED):
        await revoke_all(connection, name, is_sequence=is_sequence)
        for role, tables in PRIVILEGES.items():
            if (has_operator or role != OPERATOR) and (privileges := tables.get(name)):
                rights = sql.SQL(privileges), sql.Identifier("public", name), sql.Identifier(role)
                await connection.execute(sql.SQL("GRANT {} ON {} TO {}").format(*rights))
    for name, owner in await fetch_rows(connection, _OUTDATED_OWNER_POLICIES):
        policy = sql.Identifier("public", name), sql.Identifier(owner)
        await connection.execute(sql.SQL("ALTER POLICY owner ON {} TO {}").format(*policy))


async def _grant_operator(connection: Connection) -> None:
    """Grant joinery_operator access to the schema, and create missing policies.

    The policies permit the role to read and write all rows of its tables.
    """
    role = sql.Identifier(OPERATOR)
    await connection.execute(sql.SQL("REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {}").format(role))
    await connection.execute(sql.SQL("GRANT USAGE ON SCHEMA public TO {}").format(role))
    for (name,) in await fetch_rows(connection, _TABLES_WITHOUT_POLICY, {"tables": list(PRIVILEGES[OPERATOR])}):
        statement = sql.SQL("CREATE POLICY operator ON {} TO {} USING (true)")
        await connection.execute(statement.format(sql.Identifier("public", name), role))


async def revoke_all(connection: Connection, name: str, *, is_sequence: bool = False) -> None:
    """Revoke all privileges on a table, or on a sequence, from PUBLIC and from the processes' roles."""
    kind = sql.SQL("SEQUENCE" if is_sequence else "TABLE")
    names = kind, sql.Identifier("public", name), _ROLES
    await connection.execute(sql.SQL("REVOKE ALL ON {} {} FROM PUBLIC, {}").format(*names))
