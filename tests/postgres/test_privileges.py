"""Database privileges of each role, table by table."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

import psycopg
import pytest
import pytest_asyncio
from psycopg import errors, sql

from adapters.postgres.locks import PostgresShards
from adapters.postgres.maintenance import PostgresMaintenance
from adapters.postgres.nodes.pool import Pool
from adapters.postgres.privileges import APP, SYSTEM
from adapters.postgres.schema_migrations import load_migrations, migrate, read_compatibility
from domain.kernel.tenancy import Tenant
from ports.maintenance import Maintenance
from tests.postgres.databases import create_temporary_database
from tests.support.postgres import database, is_available
from tests.tenancy.application import serve_application

pytestmark = pytest.mark.asyncio

# S, I, U, D: select, insert, update, delete; of single columns as `U(api_version)`.
EXPECTED = {
    "agreement_acceptances": "SI",
    "agreements": "S",
    "api_keys": "S",
    "audit_entries": "SI",
    "catalogue_assessments": "SIU",
    "publication_runs": "SIUD",
    "audit_chains": "SIU(last)U(hash)",
    "audit_kept": "SIU(sealed)",
    "event_log_terms": "SI",
    "event_logs": "SIU",
    "events": "SI",
    "idempotency_keys": "SIUD",
    "inbound_messages": "SIUD",
    "invitations": "S",
    "key_uses": "S",
    "jobs": "SIUD",
    "key_ring": "",
    "brand_claims": "S",
    "claim_invitations": "",
    "vendor_profiles": "S",
    "vendor_profile_terms": "S",
    "vendor_words": "S",
    "licences": "S",
    "log_server": "",
    "mappings": "SIUD",
    "members": "S",
    "oauth_apps": "S",
    "oauth_grants": "S",
    "oauth_clients": "",
    "oauth_families": "",
    "oauth_tokens": "",
    "oauth_codes": "",
    "oauth_devices": "",
    "sso_connections": "S",
    "sso_domains": "S",
    "sso_subjects": "S",
    "network_checkpoints": "SIU",
    "published_documents": "S",
    "published_facets": "S",
    "published_images": "S",
    "published_offers": "S",
    "published_products": "S",
    "published_terms": "S",
    "published_variants": "S",
    "session_licences": "S",
    "readable_documents": "S",
    "readable_facets": "S",
    "readable_offers": "S",
    "readable_products": "S",
    "readable_terms": "S",
    "readable_variants": "S",
    "offers": "SIU",
    "organisations": "S",
    "plans": "S",
    "platform_backups": "",
    "platform_checks": "",
    "platform_instances": "",
    "platform_incidents": "",
    "users": "",
    "authenticators": "",
    "recovery_codes": "",
    "sessions": "",
    "one_time_links": "",
    "security_events": "",
    "outgoing_mail": "",
    "passkeys": "",
    "passkey_challenges": "",
    "product_documents": "SIUD",
    "product_facets": "SIUD",
    "product_terms": "SID",
    "products": "SIU",
    "push_parts": "SIUD",
    "request_logs": "S",
    "row_fingerprints": "SIU",
    "runs": "SIUD",
    "schema_migrations": "",
    "purges": "",
    "sources": "SIUD",
    "storage_usage": "SIU",
    "billed_months": "SIU",
    "billing_accounts": "SIUD",
    "credit_entries": "SI",
    "credit_ledgers": "SIU",
    "credit_lots": "SIU",
    "credit_purchases": "SIUD",
    "credit_rates": "S",
    "credit_reservations": "SIU",
    "conversations": "SIUD",
    "assistant_turns": "SIUD",
    "assistant_frames": "SIUD",
    "assistant_memories": "SIUD",
    "assistant_settings": "SIUD",
    "assistant_preferences": "SIUD",
    "assistant_spend": "SIU",
    "saved_views": "SIUD",
    "list_preferences": "SIUD",
    "bulk_actions": "SIUD",
    "comparison_links": "SIUD",
    "credit_settings": "SIUD",
    "demand_signal_ids": "SIU",
    "demand_hours": "SIU",
    "demand_cells": "SI",
    "demand_queries": "S",
    "usage_days": "SIU",
    "usage_entries": "SIUD",
    "usage_thresholds": "SIU",
    "stored_objects": "SIUD",
    "uploads": "SIUD",
    "source_probes": "SIUD",
    "exports": "SIUD",
    "scheduled_exports": "SIUD",
    "category_rules": "SIUD",
    "model_uses": "SIUD",
    "match_pairs": "SIUD",
    "merges": "SIUD",
    "merge_counts": "SIU",
    "invoices": "SIUD",
    "judge_settings": "SIUD",
    "agents": "SIUD",
    "category_answers": "SIUD",
    "proposals": "SIUD",
    "notification_rules": "SIUD",
    "notification_findings": "SIUD",
    "notifications": "SIUD",
    "seen_changes": "SIUD",
    "corrections": "SIUD",
    "correction_batches": "SIUD",
    "correction_changes": "SI",
    "plan_prices": "S",
    "usage_charges": "SIUD",
    "images": "SIUD",
    "image_addresses": "SIUD",
    "image_uses": "SIUD",
    "match_queue": "SIUD",
    "match_items": "SIU",
    "match_keys": "SIU",
    "match_models": "SIUD",
    "variants": "SIU",
    "webhook_deliveries": "SIUD",
    "webhook_endpoints": "SIUD",
}
EXPECTED_OF_SYSTEM = dict.fromkeys(EXPECTED, "") | {
    "agreements": "S",
    "api_keys": "S",
    "audit_kept": "S",
    "event_logs": "S",
    "events": "S",
    "idempotency_keys": "SD",
    "invitations": "S",
    "key_uses": "SIU",
    "jobs": "SU",
    "key_ring": "SIU",
    "brand_claims": "S",
    "claim_invitations": "S",
    "vendor_profiles": "",
    "vendor_profile_terms": "",
    "vendor_words": "",
    "licences": "S",
    "match_queue": "S",
    "members": "S",
    "oauth_apps": "S",
    "oauth_grants": "S",
    "oauth_clients": "SIUD",
    "oauth_families": "SIUD",
    "oauth_tokens": "SIUD",
    "oauth_codes": "SIUD",
    "oauth_devices": "SIUD",
    "sso_connections": "S",
    "sso_domains": "S",
    "organisations": "S",
    "plans": "S",
    "model_uses": "S",
    "platform_backups": "S",
    "platform_checks": "SIUD",
    "platform_instances": "SIUD",
    "platform_incidents": "SIU",
    "purges": "SU",
    "push_parts": "S",
    "request_logs": "SI",
    "billed_months": "S",
    "billing_accounts": "S",
    "credit_ledgers": "S",
    "credit_lots": "S",
    "credit_purchases": "S",
    "conversations": "SD",
    "assistant_turns": "SD",
    "assistant_frames": "SD",
    "assistant_memories": "SD",
    "comparison_links": "SD",
    "credit_settings": "S",
    "plan_prices": "S",
    "usage_charges": "S",
    "credit_rates": "S",
    "proposals": "SD",
    "notification_rules": "S",
    "notifications": "SD",
    "credit_reservations": "SD",
    "demand_signal_ids": "SD",
    "demand_hours": "SD",
    "demand_cells": "SD",
    "usage_days": "S",
    "storage_usage": "S",
    "runs": "S",
    "schema_migrations": "S",
    "webhook_deliveries": "S",
    "sources": "S",
    "exports": "S",
    "scheduled_exports": "S",
    "stored_objects": "S",
    "usage_entries": "S",
    "usage_thresholds": "S",
    "webhook_endpoints": "S",
    "users": "SIU",
    "authenticators": "SIUD",
    "recovery_codes": "SIUD",
    "sessions": "SIUD",
    "one_time_links": "SIUD",
    "security_events": "SID",
    "outgoing_mail": "SIUD",
    "passkeys": "SIUD",
    "passkey_challenges": "SID",
}
ROLES = {APP: EXPECTED, SYSTEM: EXPECTED_OF_SYSTEM}
_TABLES = """
SELECT c.relname, c.relispartition, coalesce((SELECT string_agg(a.privilege_type, ',')
    FROM aclexplode(c.relacl) a WHERE a.grantee IN (0, %(role)s::regrole)), ''),
    coalesce((SELECT string_agg(a.privilege_type || '(' || t.attname || ')', ',') FROM pg_attribute t, aclexplode(t.attacl) a
        WHERE t.attrelid = c.oid AND a.grantee IN (0, %(role)s::regrole)), '')
FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
"""


@pytest_asyncio.fixture(params=["embedded", "server"])
async def address(request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """Return a migrated database with its partitions, on the embedded server and on the local one."""
    if request.param == "server" and not await is_available():
        pytest.skip("there is no server at hand")
    async with create_temporary_database("rights", await database(request.param)) as made:
        pool = Pool(made, size=1)
        await PostgresMaintenance(pool).maintain_partitions()
        await pool.close()
        yield made


async def _fetch_rows(address: str, statement: str, **values: Any) -> list[tuple[Any, ...]]:
    async with await psycopg.AsyncConnection.connect(address, autocommit=True) as owner:
        return await (await owner.execute(statement.encode(), values)).fetchall()


@pytest.mark.parametrize("role", ROLES)
async def test_table_privileges_are_as_listed(address: str, role: str) -> None:
    found = {}
    for name, partition, rights, columns in await _fetch_rows(address, _TABLES, role=role):
        letters = "".join(letter for letter in "SIUD" for right in rights.split(",") if right[:1] == letter)
        letters += "".join(right[0] + right[right.index("(") :] for right in columns.split(",") if right)
        if partition:
            assert letters == "", f"{name}: only the parent has policies"
        else:
            found[name] = letters
            assert not set(rights.split(",")) & {"TRUNCATE", "REFERENCES", "TRIGGER", "MAINTAIN"}, name
    assert found == ROLES[role]


@pytest.mark.parametrize("role", ROLES)
async def test_privileges_on_other_objects_are_as_listed(address: str, role: str) -> None:
    rights = "SELECT has_schema_privilege(%(who)s, 'public', %(right)s)"
    assert await _fetch_rows(address, rights, who=role, right="USAGE") == [(True,)]
    assert await _fetch_rows(address, rights, who=role, right="CREATE") == [(False,)]
    assert await _fetch_rows(address, rights, who="public", right="CREATE") == [(False,)]
    temporary = "SELECT has_database_privilege(%(who)s, current_database(), %(right)s)"
    assert await _fetch_rows(address, temporary, who=role, right="TEMPORARY") == [(True,)]
    assert await _fetch_rows(address, temporary, who=role, right="CREATE") == [(False,)]
    assert await _fetch_rows(address, temporary, who="public", right="TEMPORARY") == [(False,)]
    sequences = "SELECT relname, has_sequence_privilege(%(who)s, oid, 'UPDATE') FROM pg_class WHERE relkind = 'S'"
    assert await _fetch_rows(address, sequences, who=role) == []
    functions = """SELECT proname, has_function_privilege('public', oid, 'EXECUTE'), prosecdef, coalesce(proconfig::text, '')
        FROM pg_proc WHERE pronamespace = 'public'::regnamespace"""
    for name, open_to_all, definer, settings in await _fetch_rows(address, functions):
        assert not open_to_all and not definer, name
        # evaluated for each row, so its body names the schema of the table instead
        assert "search_path=pg_catalog, pg_temp" in settings or name == "licensed_view", name


@pytest.mark.parametrize("role", ROLES)
async def test_processes_lack_other_privileges(address: str, role: str) -> None:
    for statement in (
        "CREATE TABLE public.mine (a integer)",
        "CREATE FUNCTION public.mine() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
        "CREATE SCHEMA mine",
        "UPDATE plans SET monthly = 0",
        "UPDATE organisations SET plan = 'max'",
        "INSERT INTO schema_migrations (name) VALUES ('9999')",
        "DELETE FROM event_logs",
        "DELETE FROM events",
        "UPDATE audit_entries SET before = '{}'",
        "TRUNCATE jobs",
        "UPDATE event_log_terms SET block = 0",
        "DELETE FROM network_checkpoints",
        "SELECT identity FROM log_server",
        "SELECT protect_tenant_table('plans')",
        "ALTER TABLE sources DISABLE ROW LEVEL SECURITY",
    ):
        async with await psycopg.AsyncConnection.connect(address, autocommit=True) as connection:
            await connection.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(role)))
            await connection.execute("SET joinery.org = 'org_1'; SET joinery.livemode = 't'")
            with pytest.raises(errors.InsufficientPrivilege):
                await connection.execute(statement.encode())


async def test_migrating_again_revokes_privileges_granted_since(address: str) -> None:
    async with await psycopg.AsyncConnection.connect(address, autocommit=True) as owner:
        await owner.execute(f"GRANT ALL ON plans, schema_migrations, events_default TO {APP}, {SYSTEM}".encode())
        await owner.execute("GRANT SELECT ON sources TO PUBLIC; GRANT CREATE ON SCHEMA public TO PUBLIC")
    assert await migrate(address) == []
    for role in ROLES:
        await test_table_privileges_are_as_listed(address, role)
        await test_privileges_on_other_objects_are_as_listed(address, role)


async def test_a_tenants_connection_never_spans_tenants(address: str) -> None:
    """Whatever the settings: policies of joinery_app have no wildcard, and it is no member of the other role."""
    await _insert_organisations(address)
    async with await psycopg.AsyncConnection.connect(address, autocommit=True) as connection:
        await connection.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(APP)))
        with pytest.raises(errors.UndefinedObject):
            await connection.execute("SELECT count(*) FROM organisations")
        for org, expected in (("*", []), ("", []), ("%", []), ("org_1", ["org_1"])):
            await connection.execute("SELECT set_config('joinery.org', %s, false)", (org,))
            assert await (await connection.execute("SELECT id FROM organisations")).fetchall() == [
                (i,) for i in expected
            ]
    member = "SELECT pg_has_role(%(who)s, %(other)s, 'MEMBER')"
    assert await _fetch_rows(address, member, who=APP, other=SYSTEM) == [(False,)]
    assert await _fetch_rows(address, member, who=SYSTEM, other=APP) == [(False,)]


async def test_connections_across_tenants_read_all_rows(address: str) -> None:
    await _insert_organisations(address)
    pool = Pool(address, size=1)
    try:
        for scope in (None, Tenant("org_1", True), None, Tenant("org_2", False)):
            async with pool.connect_to_coordinator() if scope is None else pool.connect_to_tenant(scope) as link:
                cursor = await link.cursor.execute("SELECT id FROM organisations ORDER BY id")
                found = [id for (id,) in await cursor.fetchall()]
                assert found == (["org_1", "org_2"] if scope is None else [scope.org])
    finally:
        await pool.close()


async def test_an_owner_under_policies_reads_every_row(address: str) -> None:
    """Applies also to the next owner: a new owner sees the rows after its migration."""
    owner = sql.Identifier(f"owner_of_{urlsplit(address).path[1:]}")
    await _insert_organisations(address)
    async with await psycopg.AsyncConnection.connect(address, autocommit=True) as connection:
        await connection.execute(sql.SQL("CREATE ROLE {}").format(owner))
        try:
            await connection.execute(sql.SQL("GRANT USAGE ON SCHEMA public TO {}").format(owner))
            await connection.execute(sql.SQL("ALTER TABLE organisations OWNER TO {}").format(owner))
            assert await migrate(address) == []
            await connection.execute(sql.SQL("SET ROLE {}").format(owner))
            assert await (await connection.execute("SELECT count(*) FROM organisations")).fetchone() == (2,)
        finally:
            await connection.execute("RESET ROLE")
            await connection.execute(sql.SQL("REASSIGN OWNED BY {} TO CURRENT_USER").format(owner))
            await connection.execute(sql.SQL("DROP OWNED BY {}").format(owner))
            await connection.execute(sql.SQL("DROP ROLE {}").format(owner))


async def _insert_organisations(address: str) -> None:
    for org in ("org_1", "org_2"):
        await _fetch_rows(
            address,
            "INSERT INTO organisations VALUES (%(org)s, %(org)s, 'vendor', 'standard', NULL, %(org)s || 'l', %(org)s || 't', "
            "now()) RETURNING id",
            org=org,
        )


@pytest.mark.parametrize("name", ["joinery-prod", "Joinery", 'say "what"; --', "50% off's", "täglich", "select"])
async def test_databases_can_have_any_name(name: str, tmp_path: Path) -> None:
    server = await database()
    quoted = sql.Identifier(name)
    async with await psycopg.AsyncConnection.connect(server, autocommit=True) as owner:
        await owner.execute(sql.SQL("DROP DATABASE IF EXISTS {}").format(quoted))
        await owner.execute(sql.SQL("CREATE DATABASE {}").format(quoted))
        address = urlunsplit(urlsplit(server)._replace(path="/" + quote(name, safe="")))
        try:
            assert (
                await migrate(address)
                == (await read_compatibility(address)).names
                == [known for known, _ in load_migrations()]
            )
            async with serve_application(tmp_path, JOINERY_DATABASE_URL=address) as application:
                await application.dependencies[Maintenance].maintain_partitions()
                organisation = await application.create_organisation()
                client = await application.create_client(Tenant(organisation.id, True))
                made = await client.post("/v1/sources", {"name": "S", "kind": "push"}, idempotency_key="source-1")
                assert made.status == 201, made.body
                assert json.loads((await client.get("/v1/sources")).body)["data"][0]["id"] == made.json()["id"]
                assert await application.dependencies[PostgresShards].rebalance()
                await application.dependencies[PostgresShards].close()
        finally:
            await owner.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(quoted))
