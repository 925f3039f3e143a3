"""What the two roles that processes work as may do, table by table: no more than their statements need."""

from collections.abc import Mapping
from typing import Final, LiteralString

from psycopg import sql

from adapters.postgres.nodes.connecting import Connection

APP: Final = "joinery_app"
"""One tenant's work: policies show it the rows of the tenant that its session is set to, and fail when there is none."""
SYSTEM: Final = "joinery_system"
"""What truly spans tenants: policies show it every row."""
OPERATOR: Final = "joinery_operator"
"""The role in which requests write organisations, members and credentials when the login does not own the schema."""

_READ: Final = "SELECT"
_APPEND: Final = "SELECT, INSERT"
_CHANGE: Final = "SELECT, INSERT, UPDATE"
_REPLACE: Final = "SELECT, INSERT, DELETE"
_ALL: Final = "SELECT, INSERT, UPDATE, DELETE"

PRIVILEGES: Final[Mapping[str, LiteralString]] = {
    # plans and licences are operators', who act as the owner
    "plans": _READ,
    "licences": _READ,
    # so are organisations, members and keys: none chooses another plan for itself, or lets others in
    "organisations": _READ,
    "members": _READ,
    "api_keys": _READ,
    "oauth_apps": _READ,
    "oauth_grants": _READ,
    "invitations": _READ,
    "key_uses": _READ,
    # who a provider says they are is written as members are
    "sso_connections": _READ,
    "sso_domains": _READ,
    "sso_subjects": _READ,
    # resources of plain stores, which can also remove
    "sources": _ALL,
    "runs": _ALL,
    "mappings": _ALL,
    "uploads": _ALL,
    "source_probes": _ALL,
    "exports": _ALL,
    "inbound_messages": _ALL,
    "category_rules": _ALL,
    "model_uses": _ALL,
    "match_pairs": _ALL,
    "merges": _ALL,
    "merge_counts": _CHANGE,
    "judge_settings": _ALL,
    "webhook_endpoints": _ALL,
    "webhook_deliveries": _ALL,
    # what was written down stays as it was; maintenance drops it by age
    "audit_entries": _APPEND,
    "audit_chains": "SELECT, INSERT, UPDATE (last, hash)",
    "audit_kept": "SELECT, INSERT, UPDATE (sealed)",
    "events": _APPEND,
    "event_logs": _CHANGE,
    "event_log_terms": _APPEND,
    "network_checkpoints": _CHANGE,
    "request_logs": _READ,
    "idempotency_keys": "SELECT, INSERT, DELETE, UPDATE (body)",
    "push_parts": _ALL,
    "stored_objects": _ALL,
    "storage_usage": _CHANGE,
    "usage_entries": _ALL,
    "usage_days": _CHANGE,
    "usage_thresholds": _CHANGE,
    "images": _ALL,
    "image_addresses": _ALL,
    "image_uses": _ALL,
    "jobs": _ALL,
    "row_fingerprints": _CHANGE,
    "products": _CHANGE,
    "product_documents": _ALL,
    "product_terms": _REPLACE,
    "variants": _CHANGE,
    "offers": _CHANGE,
    "match_queue": _ALL,
    "match_items": _CHANGE,
    "match_keys": _CHANGE,
    "match_models": _ALL,
}
"""Of joinery_app. A table that is not named is none of its business; a partition is reached through its parent, where the
policies stand."""
SYSTEM_PRIVILEGES: Final[Mapping[str, LiteralString]] = {
    # whether the schema is one that the release works on
    "schema_migrations": _READ,
    # whose credentials they are, and whom a person belongs to
    "plans": _READ,
    "organisations": _READ,
    "members": _READ,
    "api_keys": _READ,
    "invitations": _READ,
    "licences": _READ,
    # when keys were last used, written beside many organisations' requests
    "key_uses": _CHANGE,
    # whose a domain is, before anybody is known
    "sso_connections": _READ,
    "sso_domains": _READ,
    # one listener reads the log for every organisation
    "event_logs": _READ,
    "events": _READ,
    # relay and workers: what is added or finished, a tenant adds or finishes
    "jobs": "SELECT, UPDATE",
    "sources": _READ,
    "webhook_endpoints": _READ,
    "audit_kept": _READ,
    # upkeep: what is due, and what is gone by age alone
    "idempotency_keys": "SELECT, DELETE",
    "stored_objects": _READ,
    "push_parts": _READ,
    "usage_entries": _READ,
    "usage_thresholds": _READ,
    # how far matching is behind
    "match_queue": _READ,
    "exports": _READ,
    # requests of many organisations, written down in one statement, and counted for the operator
    "request_logs": "SELECT, INSERT",
    # what the operator looks at
    "usage_days": _READ,
    "storage_usage": _READ,
    "runs": _READ,
    "webhook_deliveries": _READ,
    # no tenant's at all
    "key_ring": _CHANGE,
    "purges": "SELECT, UPDATE",
    "platform_checks": _ALL,
    "platform_instances": _ALL,
    "platform_backups": _READ,
    "model_uses": _READ,
    "platform_incidents": _CHANGE,
    # people are no tenant's either
    "users": _CHANGE,
    "authenticators": _ALL,
    "recovery_codes": _ALL,
    "sessions": _ALL,
    "one_time_links": _ALL,
    "security_events": "SELECT, INSERT, DELETE",
    "outgoing_mail": _ALL,
    "passkeys": _ALL,
    "passkey_challenges": "SELECT, INSERT, DELETE",
    # nor are apps' sign-ins; who made the apps, and what was granted to them, is read
    "oauth_apps": _READ,
    "oauth_grants": _READ,
    "oauth_clients": _ALL,
    "oauth_families": _ALL,
    "oauth_tokens": _ALL,
    "oauth_codes": _ALL,
    "oauth_devices": _ALL,
}
"""Of joinery_system."""
OPERATOR_PRIVILEGES: Final[Mapping[str, LiteralString]] = {
    "organisations": "SELECT, UPDATE",
    "plans": _READ,
    "licences": _READ,
    "members": _ALL,
    "api_keys": _CHANGE,
    "key_uses": _READ,
    "invitations": _ALL,
    "users": _READ,
    "oauth_apps": _ALL,
    "oauth_grants": _CHANGE,
    "sso_connections": _ALL,
    "sso_domains": _ALL,
    "sso_subjects": _ALL,
    # on each new connection: whether the server is the one that wrote the logs
    "log_server": _CHANGE,
    "event_logs": "SELECT, UPDATE",
}
"""Of joinery_operator."""
_RIGHTS: Final = {APP: PRIVILEGES, SYSTEM: SYSTEM_PRIVILEGES, OPERATOR: OPERATOR_PRIVILEGES}
_ROLES: Final = sql.SQL(", ").join(map(sql.Identifier, (APP, SYSTEM)))
_TABLES_WITHOUT_POLICY: Final = """
SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relrowsecurity
    AND c.relname = ANY(%(tables)s) AND pg_has_role(c.relowner, 'USAGE')
    AND NOT EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = c.oid AND p.polname = 'operator')
"""
"""Tables that joinery_operator needs a policy for."""

_LOGIN_RIGHTS: Final = """
SELECT rolsuper, rolcreaterole, has_schema_privilege('public', 'CREATE') AND has_schema_privilege('public', 'USAGE')
FROM pg_roles WHERE rolname = current_user
"""
_SEPARATE_LOGINS: Final = """
SELECT m.rolname FROM pg_auth_members AS a JOIN pg_roles AS m ON m.oid = a.member JOIN pg_roles AS r ON r.oid = a.roleid
WHERE r.rolname = %s AND m.rolcanlogin AND NOT (a.admin_option OR m.rolsuper OR m.rolcreaterole)
    AND m.rolname <> current_user ORDER BY m.rolname
"""
"""Logins of processes other than the owner's, which administers the role or can create roles."""
_PRESENT: Final = "SELECT rolname FROM pg_roles WHERE rolname = ANY(%s)"
_OWNED: Final = """
SELECT c.relname, c.relkind = 'S' FROM pg_class c
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'S')
    AND pg_has_role(c.relowner, 'USAGE')
"""
_OTHER_OWNER: Final = """
SELECT pg_get_userbyid(c.relowner) FROM pg_class c
WHERE c.relnamespace = 'public'::regnamespace AND c.relname = 'schema_migrations' AND NOT pg_has_role(c.relowner, 'USAGE')
"""
"""The owner of the first table that a migration creates, if the login does not have the owner's rights."""
_MADE_OVER: Final = """
SELECT c.relname, pg_get_userbyid(c.relowner) FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid
WHERE p.polname = 'owner' AND c.relnamespace = 'public'::regnamespace AND NOT c.relowner = ANY(p.polroles)
    AND pg_has_role(c.relowner, 'USAGE')
"""


async def make_roles(connection: Connection) -> None:
    """Make the roles that are missing: they are the whole server's, and policies name them."""
    for role in (APP, SYSTEM):
        await connection.execute(
            f"""DO $$ BEGIN
                IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{role}') THEN CREATE ROLE {role} NOLOGIN; END IF;
            EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$""".encode()
        )
        if not await _is_granted(connection, role):
            await connection.execute(sql.SQL("GRANT {} TO CURRENT_USER").format(sql.Identifier(role)))
    [(superuser, makes_roles, _)] = await (await connection.execute(_LOGIN_RIGHTS)).fetchall()
    if (superuser or makes_roles) and not await _exists(connection, OPERATOR):
        await connection.execute(sql.SQL("CREATE ROLE {} NOLOGIN").format(sql.Identifier(OPERATOR)))


async def _exists(connection: Connection, role: str) -> bool:
    return bool(await (await connection.execute(_PRESENT, ([role],))).fetchall())


async def other_owner(connection: Connection) -> str | None:
    """Return the owner of the tables; None if the login acts as the owner, or there are no tables."""
    row = await (await connection.execute(_OTHER_OWNER)).fetchone()
    return row[0] if row is not None else None


async def missing_grants(connection: Connection) -> list[str]:
    """Statements that a superuser has to run before the login can migrate the database; none when it can."""
    login = sql.Identifier(connection.info.user).as_string(connection)
    [(superuser, makes_roles, creates)] = await (await connection.execute(_LOGIN_RIGHTS)).fetchall()
    present = {name for (name,) in await (await connection.execute(_PRESENT, ([APP, SYSTEM],))).fetchall()}
    grants = []
    for role in () if superuser else (APP, SYSTEM):
        if role not in present and not makes_roles:
            grants += [f"CREATE ROLE {role} NOLOGIN", f"GRANT {role} TO {login} WITH ADMIN OPTION"]
        elif role in present and not await _may_grant(connection, role, makes_roles=makes_roles):
            grants.append(f"GRANT {role} TO {login} WITH ADMIN OPTION")
    if not (superuser or makes_roles) and not await _exists(connection, OPERATOR):
        separate = await (await connection.execute(_SEPARATE_LOGINS, (APP,))).fetchall()
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
    cursor = await connection.execute("SELECT pg_has_role(%s, 'MEMBER WITH ADMIN OPTION')", (role,))
    return (await cursor.fetchone()) == (True,) or await _is_granted(connection, role)


async def _is_granted(connection: Connection, role: str) -> bool:
    """Return whether a grant lets the login SET ROLE to the role; a superuser needs none.

    From PostgreSQL 16 on the creator of a role is a member of it, but cannot SET ROLE to it.
    """
    kind = "SET" if connection.info.server_version >= 160_000 else "MEMBER"
    cursor = await connection.execute(
        "SELECT pg_has_role(%s, %s) AND NOT rolsuper FROM pg_roles WHERE rolname = current_user", (role, kind)
    )
    return (await cursor.fetchone()) == (True,)


async def grant(connection: Connection) -> None:
    """Leave the roles, and everybody else, with exactly these rights; whoever owns a table now sees all of it."""
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
    cursor = await connection.execute(_OWNED)
    for name, sequence in await cursor.fetchall():
        await close(connection, name, sequence=sequence)
        for role, tables in _RIGHTS.items():
            if (has_operator or role != OPERATOR) and (privileges := tables.get(name)):
                rights = sql.SQL(privileges), sql.Identifier("public", name), sql.Identifier(role)
                await connection.execute(sql.SQL("GRANT {} ON {} TO {}").format(*rights))
    cursor = await connection.execute(_MADE_OVER)
    for name, owner in await cursor.fetchall():
        policy = sql.Identifier("public", name), sql.Identifier(owner)
        await connection.execute(sql.SQL("ALTER POLICY owner ON {} TO {}").format(*policy))


async def _grant_operator(connection: Connection) -> None:
    """Grant joinery_operator the use of the schema, and policies that show it all rows of its tables."""
    role = sql.Identifier(OPERATOR)
    await connection.execute(sql.SQL("REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {}").format(role))
    await connection.execute(sql.SQL("GRANT USAGE ON SCHEMA public TO {}").format(role))
    cursor = await connection.execute(_TABLES_WITHOUT_POLICY, {"tables": list(OPERATOR_PRIVILEGES)})
    for (name,) in await cursor.fetchall():
        made = sql.SQL("CREATE POLICY operator ON {} TO {} USING (true)")
        await connection.execute(made.format(sql.Identifier("public", name), role))


async def close(connection: Connection, name: str, *, sequence: bool = False) -> None:
    """Take every right on a table or sequence from everybody but its owner."""
    kind = sql.SQL("SEQUENCE" if sequence else "TABLE")
    closed = kind, sql.Identifier("public", name), _ROLES
    await connection.execute(sql.SQL("REVOKE ALL ON {} {} FROM PUBLIC, {}").format(*closed))
