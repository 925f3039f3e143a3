"""Processes whose database login is a member of the roles but does not own the schema."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import errors, sql
from psycopg.conninfo import make_conninfo

from adapters.postgres import privileges
from adapters.postgres.nodes.connections import connect
from adapters.postgres.nodes.pool import Pool
from adapters.postgres.privileges import APP, OPERATOR, SYSTEM, list_missing_grants
from adapters.postgres.schema_migrations import MigrationError, PostgresSchemaCheck, migrate
from entrypoints.cli.main import main
from tests.flows.feeds import build_record
from tests.flows.service_processes import ServiceProcesses, wait_until
from tests.postgres.databases import create_database

LOGIN = "joinery_run"


@pytest.fixture
def separate_stage(tmp_path: Path) -> Iterator[ServiceProcesses]:
    """Yield a stage whose processes log in as joinery_run, with migrations and maintenance as the owner."""
    owner = asyncio.run(create_database("separate"))
    with psycopg.connect(owner, autocommit=True) as connection:
        if connection.execute("SELECT FROM pg_roles WHERE rolname = %s", (LOGIN,)).fetchone() is None:
            connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(LOGIN)))
        for role in (APP, SYSTEM, OPERATOR):
            connection.execute(sql.SQL("GRANT {} TO {}").format(sql.Identifier(role), sql.Identifier(LOGIN)))
    stage = ServiceProcesses(
        owner,
        tmp_path,
        {"JOINERY_DATABASE_URL": make_conninfo(owner, user=LOGIN), "JOINERY_MIGRATE_DATABASE_URL": owner},
    )
    yield stage
    stage.stop()


def test_the_service_works_without_owning_its_schema(separate_stage: ServiceProcesses) -> None:
    processes = {"JOINERY_MIGRATE_DATABASE_URL": ""}
    separate_stage.start("api", **processes)
    separate_stage.start("worker", **processes)
    separate_stage.start("scheduler")
    tenancy = separate_stage.create_organisation()  # the login itself writes the key, as processes do
    wait_until(tenancy.api.is_ready, "the API is ready", within=40)
    api = tenancy.api
    source = api.create_source("push", config={"currency": "usd"})
    run = api.push(source, [build_record("A1")])["id"]
    assert api.wait_for_end(run)["status"] == "succeeded"
    assert api.get("/v1/products")["data"]
    with psycopg.connect(separate_stage.env["JOINERY_DATABASE_URL"], autocommit=True) as login:
        for statement in ("CREATE TABLE mine (a integer)", "DROP TABLE sources", "ALTER TABLE runs ADD COLUMN a text"):
            with pytest.raises(errors.InsufficientPrivilege):
                login.execute(statement.encode())
    for name in ("api", "worker", "scheduler"):
        assert "permission denied" not in separate_stage.log_path(name).read_text()


def test_an_owner_with_admin_option_acts_in_the_roles() -> None:
    """PostgreSQL makes the creator of a role its administrator from version 16 on."""
    owner = asyncio.run(create_database("maker", migrated=False))
    login = "joinery_maker"
    own = sql.Identifier(login)
    with psycopg.connect(owner, autocommit=True) as connection:
        if connection.info.server_version < 160_000:
            pytest.skip("members may always work as their roles")
        connection.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(own))
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN CREATEROLE").format(own))
        connection.execute(sql.SQL("GRANT CREATE ON SCHEMA public TO {}").format(own))
        for role in (APP, SYSTEM):
            given = sql.SQL("GRANT {} TO {} WITH ADMIN TRUE, SET FALSE, INHERIT FALSE")
            connection.execute(given.format(sql.Identifier(role), own))
    assert asyncio.run(migrate(make_conninfo(owner, user=login)))
    with psycopg.connect(make_conninfo(owner, user=login), autocommit=True) as connection:
        for role in (APP, SYSTEM):
            connection.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(role)))
    with psycopg.connect(owner, autocommit=True) as connection:
        for statement in ("REASSIGN OWNED BY {} TO CURRENT_USER", "DROP OWNED BY {}", "DROP ROLE {}"):
            connection.execute(sql.SQL(statement).format(own))


def test_a_login_without_privileges_gets_the_grants_to_run() -> None:
    owner = asyncio.run(create_database("ungranted", migrated=False))
    login = "joinery_nobody"
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(sql.Identifier(login)))
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(login)))
    with pytest.raises(MigrationError) as refused:
        asyncio.run(migrate(make_conninfo(owner, user=login)))
    message = str(refused.value)
    assert "GRANT CREATE, USAGE ON SCHEMA public" in message and login in message
    statements = [line.strip() for line in message.splitlines()[1:]]
    with psycopg.connect(owner, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())
    assert asyncio.run(migrate(make_conninfo(owner, user=login))), "the reported grants are sufficient"
    with psycopg.connect(owner, autocommit=True) as connection:
        own = sql.Identifier(login)
        connection.execute(sql.SQL("REASSIGN OWNED BY {} TO CURRENT_USER").format(own))
        connection.execute(sql.SQL("DROP OWNED BY {}").format(own))
        connection.execute(sql.SQL("DROP ROLE {}").format(own))


def test_owner_commands_are_refused_with_one_sentence(
    separate_stage: ServiceProcesses, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in (separate_stage.env | {"JOINERY_MIGRATE_DATABASE_URL": ""}).items():
        monkeypatch.setenv(name, value)
    assert main(["org", "create", "--name", "Fjord", "--kind", "vendor"]) == 1
    assert capsys.readouterr().err == (
        "joinery: This command requires the database role that owns the schema. Set JOINERY_MIGRATE_DATABASE_URL to a URL "
        "with this role.\n"
    )
    monkeypatch.setenv("JOINERY_MIGRATE_DATABASE_URL", separate_stage.env["JOINERY_MIGRATE_DATABASE_URL"])
    assert main(["org", "create", "--name", "Fjord", "--kind", "vendor"]) == 0


def test_a_login_that_does_not_own_the_tables_must_migrate_as_their_owner(separate_stage: ServiceProcesses) -> None:
    with pytest.raises(MigrationError) as refused:
        asyncio.run(migrate(separate_stage.env["JOINERY_DATABASE_URL"]))
    message = str(refused.value)
    assert "owner" in message and "JOINERY_MIGRATE_DATABASE_URL" in message and "GRANT" not in message


@pytest.fixture
def logins() -> Iterator[tuple[str, str]]:
    """Yield addresses of an owner that creates no roles, and of a login without joinery_operator."""
    database = asyncio.run(create_database("operator"))
    names = ("joinery_plain_owner", "joinery_plain_run")
    with psycopg.connect(database, autocommit=True) as connection:
        for name in names:
            connection.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(sql.Identifier(name)))
            connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(name)))
        for role in (APP, SYSTEM):
            granted = tuple(map(sql.Identifier, (role, *names)))
            connection.execute(sql.SQL("GRANT {} TO {} WITH ADMIN OPTION").format(*granted[:2]))
            connection.execute(sql.SQL("GRANT {} TO {}").format(granted[0], granted[2]))
    yield make_conninfo(database, user=names[0]), make_conninfo(database, user=names[1])
    with psycopg.connect(database, autocommit=True) as connection:
        for name in names:
            connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


def test_an_owner_needs_the_operators_role_where_a_separate_login_needs_it(
    logins: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(privileges, "OPERATOR", "joinery_absent")

    async def missing() -> list[str]:
        async with await connect(logins[0], "tests") as connection:
            return await list_missing_grants(connection)

    grants = asyncio.run(missing())
    assert 'GRANT joinery_absent TO "joinery_plain_run"' in grants and "CREATE ROLE joinery_absent NOLOGIN" in grants
    assert 'GRANT joinery_absent TO "joinery_plain_owner"' not in grants


def test_a_login_without_the_operators_role_is_reported(logins: tuple[str, str]) -> None:
    async def fault() -> str | None:
        pool = Pool(logins[1])
        try:
            return await PostgresSchemaCheck(pool).check()
        finally:
            await pool.close()

    assert f"cannot SET ROLE {OPERATOR}" in (asyncio.run(fault()) or "")
