"""Statements on tenant tables: each names organisation and mode, or is a listed exception with its reason."""

import re
from importlib.resources import files
from pathlib import Path

import pytest

import adapters.postgres
from adapters.postgres.schema_migrations import load_migrations
from adapters.postgres.stores import load_statements

FOLDER = Path(adapters.postgres.__file__).parent
ACROSS = {
    "billing.find_tenant": "a notification of the payment provider names a customer, not an organisation",
    "billing.list_accounts": "the scheduler reconciles every account; each in its name",
    "billing.list_ended_grace": "the scheduler ends grace periods of every organisation; each in its name",
    "billing.list_unclosed": "the scheduler closes months of every organisation; each in its name",
    "billing.list_automatic_purchases": "the scheduler buys credit for every organisation; each in its name",
    "billing.list_arrears": "operators look at accounts in arrears",
    "comparison.list_orgs_with_expired": "upkeep by age alone",
    "comparison.delete_expired": "upkeep by age alone; each organisation is named, in both modes",
    "assistant.count_ended_turns": "the state of the assistant, for all organisations together",
    "assistant.list_orgs_with_old_conversations": "upkeep by age alone",
    "assistant.delete_conversations": "upkeep by age alone; each organisation is named, in both modes",
    "assistant.list_orgs_with_old_frames": "upkeep by age alone",
    "assistant.delete_frames": "upkeep by age alone; each organisation is named, in both modes",
    "assistant.list_orgs_with_old_memories": "upkeep by age alone",
    "assistant.delete_memories": "upkeep by age alone; each organisation is named, in both modes",
    "orgs.find_keys": "finds out whose credentials they are",
    "event_log.list_bounds": "one listener reads for every organisation; each of those asked for is named",
    "event_log.filter_licensed": "what other organisations' licences open; each licence names its owner and catalogue",
    "event_log.list_publishers": "one relay reads for every organisation; each is named",
    "event_log.list_publishers_among": "one relay reads for every organisation; each of those asked for is named",
    "idempotency.list_orgs_with_expired": "upkeep by age alone: whose answers are old",
    "idempotency.purge_expired": "upkeep by age alone; each organisation is named, in both modes",
    "jobs.count_backlog": "operators look at what waits of all organisations",
    "jobs.list_due_lanes": "the relay serves every organisation's jobs",
    "jobs.find_next_due": "the relay serves every organisation's jobs",
    "jobs.list_orgs_of_lane": "whose a lane is that an earlier release named",
    "jobs.mark_dispatched": "the relay serves every organisation's jobs; each is named, in both modes",
    "jobs.claim": "a lane is an organisation's in both modes; each claimed job names its tenant",
    "jobs.list_orgs_with_dispatched": "the relay serves every organisation's jobs",
    "jobs.reset_dispatched": "the relay serves every organisation's jobs; each is named, in both modes",
    "sources.find_recipient": "finds out whose the address is that a message is for",
    "notifications.list_due": "the scheduler serves every organisation's rules; each in its name",
    "notifications.list_orgs_with_old": "upkeep by age alone",
    "notifications.delete_old": "upkeep by age alone; each organisation is named, in both modes",
    "matching.measure_backlog": "operators ask how far matching is behind, over all organisations",
    "oauth.find_app": "finds out whose app it is that names itself",
    "oauth.get_app": "an app, whoever made it",
    "oauth.find_access_tokens": "finds out whose tokens they are",
    "oauth.find_token": "finds out whose token it is",
    "orgs.delete_invitations": "upkeep by age alone",
    "orgs.find_invitation": "finds out whose the invitation is",
    "orgs.list_organisations": "a person's own organisations, by their memberships",
    "people.find_sessions": "whose session it is, and what they may do where they are members",
    "request_logs.record_key_uses": "many organisations' keys in one statement; each names its tenant",
    "request_logs.insert_logs": "many organisations' logs in one statement; each log names its tenant",
    "brand.count_pending": "the operator merges a profile, which several organisations may claim",
    "brand.find_claim": "finds out whose the claim is that the operator decides",
    "brand.list_claims": "operators decide the claims of all organisations",
    "brand.list_due_claims": "the scheduler checks every organisation's claims; each is named, and kept in its name",
    "secrets.count_reference_table_values": "operators ask how much is sealed under which secret, over all organisations",
    "secrets.count_tenant_values": "operators ask how much is sealed under which secret, over all organisations",
    "secrets.has_api_keys": "the first process ever asks whether there are any",
    "webhook_deliveries.list_ended_rotations": "the scheduler serves every organisation's endpoints; each is named",
    "webhook_deliveries.list_subscribers": "a worker serves every organisation's endpoints",
    "runs.list_due_scheduled_exports": "the scheduler serves every organisation; each schedule is named with its tenant, and read in its name",
    "runs.list_due_exports": "the scheduler serves every organisation; each export is named with its tenant, and expires in its name",
    "runs.find_oldest_waiting": "the operator's look at how long exports wait",
    "orgs.find_by_domain": "whose a domain is, before anybody is known",
    "orgs.list_domains_to_check": "the scheduler looks at every organisation's domains; each is named, and kept in its name",
    "storage.list_open_batches": "the operator looks at every organisation's; each is named",
    "storage.list_due": "the scheduler serves every organisation; each entry is named with its tenant, and freed in its name",
    "storage.list_freed": "the scheduler serves every organisation; each entry is named with its tenant",
    "storage.sum_by_kind": "the operator's sums over all organisations",
    "storage.sum_freed": "the operator's sums over all organisations",
    "usage.list_resumable": "the scheduler serves every organisation; each is named",
    "usage.find_unaggregated": "the scheduler serves every organisation; each is named, and folded in its name",
    "platform.list_busiest_tenants": "the operator's look at who has most to do, over all organisations",
    "platform.list_slowest_sources": "the operator's look at slow sources, over all organisations",
    "platform.list_failing_sources": "the operator's look at sources that fail, over all organisations",
    "platform.find_tenant_of_source": "whose a source is, asked by its operator",
    "platform.read_tenant_metrics": "what the operator is alerted about, over all organisations",
    "sources.list_due": "the scheduler serves every organisation's sources",
    "sources.list_followers": "the scheduler serves every organisation's sources, each with the licences of its organisation",
    "proposals.list_tenants_with_expired": "the scheduler serves every organisation; each is processed in its own transaction",
    "proposals.list_orgs_with_decided": "upkeep by age alone",
    "proposals.delete_decided": "upkeep by age alone; each organisation is named, in both modes",
    "credits.list_due": "the scheduler serves every organisation; each is processed in its own transaction",
    "credits.list_orgs_with_old_reservations": "upkeep by age alone",
    "credits.delete_reservations": "upkeep by age alone; each organisation is named, in both modes",
    "demand.list_days": "the scheduler serves every vendor; each is named",
    "demand.summarise_subjects": "sums over all organisations, which the rule for cells checks",
    "demand.summarise_rest": "sums over all organisations, which the rule for cells checks",
    "demand.list_orgs_of_day": "the scheduler serves every organisation; each is named",
    "demand.remove_signals": "the end of a vendor's day; each organisation is named",
    "demand.list_orgs_with_old_ids": "upkeep by age alone",
    "demand.delete_ids": "upkeep by age alone; each organisation is named, in both modes",
    "demand.list_orgs_with_old_cells": "upkeep by age alone",
    "demand.delete_cells": "upkeep by age alone; each organisation is named, in both modes",
    "sources.find_next_due": "the scheduler serves every organisation's sources",
}
ACROSS_IN_CODE = {
    ("erasure.py", "SELECT livemode, id FROM webhook_endpoints"): "an organisation leaves in both modes; it is named",
    ("erasure.py", "SELECT id FROM events WHERE owner"): "copies in the network's log, by whose they are",
    ("erasure.py", "UPDATE webhook_deliveries SET body"): "what others were sent of its events; each event is named",
    ("maintenance.py", "DELETE FROM audit_kept WHERE expires_at"): "upkeep by age alone",
    ("maintenance.py", "UPDATE audit_chains AS c SET began"): "upkeep by age alone; each chain by its own entries",
    ("maintenance.py", "DELETE FROM audit_entries AS e"): "upkeep by age alone; each chain's by where it begins",
    ("maintenance.py", "DELETE FROM inbound_messages WHERE received_at"): "upkeep by age alone",
    ("partitions.py", "UPDATE event_logs AS l SET low"): "upkeep by age alone; each log is raised by its own events",
    ("partitions.py", "DELETE FROM event_log_terms AS t"): "upkeep by age alone; each log's by its own low watermark",
}
"""Exceptions in Python code, by file and beginning of the statement."""
WITHOUT_MODE = {
    "invitations",
    "members",
    "oauth_apps",
    "oauth_grants",
    "published_documents",
    "published_facets",
    "published_images",
    "published_offers",
    "published_products",
    "published_terms",
    "published_variants",
    "sso_connections",
    "sso_domains",
    "sso_subjects",
}
_TABLE = re.compile(r"\b(?:FROM|JOIN|INTO|UPDATE)\s+(?:ONLY\s+)?(?:here\.)?([a-z_]+)\b", re.IGNORECASE)
_RENAMED = re.compile(r"^ALTER TABLE ([a-z_]+) RENAME TO ([a-z_]+);", re.MULTILINE)
_CREATED = re.compile(r"^CREATE TABLE ([a-z_]+) \((.*?)^\)", re.MULTILINE | re.DOTALL)


def _list_tenant_tables() -> frozenset[str]:
    """Return every table with a column `org`, according to the migrations."""
    text = "\n".join(script for _, script in load_migrations())
    renamed = dict(_RENAMED.findall(text))
    created = [name for name, body in _CREATED.findall(text) if re.search(r"^\s+org text", body, re.MULTILINE)]
    return frozenset(renamed.get(name, name) for name in created)


TABLES = _list_tenant_tables()


def _list_areas() -> list[str]:
    folder = files("adapters.postgres").joinpath("sql")
    return sorted(entry.name.removesuffix(".sql") for entry in folder.iterdir() if entry.name.endswith(".sql"))


EVERY = {f"{area}.{name}": text for area in _list_areas() for name, text in load_statements(area).items()}


def find_tables(statement: str) -> set[str]:
    """Return the tenant tables that a statement reads or writes."""
    return set(_TABLE.findall(statement)) & TABLES


def find_missing_parameters(statement: str) -> set[str]:
    """Return the tenant parameters that the statement lacks."""
    wanted = {"%(org)s", "%(livemode)s"} if find_tables(statement) - WITHOUT_MODE else {"%(org)s"}
    return {name for name in wanted if name not in statement} if find_tables(statement) else set()


def test_the_tables_are_known() -> None:
    assert {"sources", "events", "jobs", "members", "product_documents", "idempotency_keys"} <= TABLES
    assert {"plans", "organisations", "platform_checks"}.isdisjoint(TABLES)


@pytest.mark.parametrize("name", sorted(set(EVERY) - set(ACROSS)))
def test_statement_names_the_tenant(name: str) -> None:
    assert find_missing_parameters(EVERY[name]) == set()


@pytest.mark.parametrize("name", sorted(ACROSS))
def test_the_list_of_exceptions_is_needed(name: str) -> None:
    assert find_missing_parameters(EVERY[name]), "this statement names its tenant: remove it from the list"


def test_every_table_of_a_join_is_bound_to_the_tenant() -> None:
    """Naming the tenant once is not enough: each table of a statement is compared with it or with a bound table."""
    for name, text in EVERY.items():
        if name in ACROSS or not find_tables(text) - WITHOUT_MODE:
            continue
        references = [table for table in _TABLE.findall(text) if table in TABLES]
        bound = len(re.findall(r"\borg\b", text))
        assert bound >= len(references), name


def test_statements_in_code_name_the_tenant() -> None:
    """Applies to SQL in Python code."""
    for path in sorted(FOLDER.glob("*.py")):
        text = path.read_text(encoding="utf-8")
        for literal in re.findall(
            r'"((?:SELECT|INSERT|UPDATE|DELETE| AND EXISTS| AND p\.id IN)[^"]*(?:"\s+"[^"]*)*)"', text
        ):
            if find_tables(literal) and not _spans_tenants(path.name, literal):
                assert find_missing_parameters(re.sub(r'"\s+"', "", literal)) == set(), (path.name, literal)


def _spans_tenants(file: str, literal: str) -> bool:
    return any(file == name and literal.startswith(beginning) for name, beginning in ACROSS_IN_CODE)


def test_the_exceptions_in_code_exist() -> None:
    for file, beginning in ACROSS_IN_CODE:
        assert beginning in (FOLDER / file).read_text(encoding="utf-8")


REFERENCE = {
    "api_keys",
    "brand_claims",
    "invitations",
    "licences",
    "members",
    "oauth_apps",
    "oauth_grants",
    "sso_connections",
    "sso_domains",
    "sso_subjects",
}
"""Tables that every node has."""
_BOUND = re.compile(r"\borg = (?:ANY\(%\(orgs\)s\)|%\(org\)s)")


@pytest.mark.parametrize("name", sorted(name for name, text in EVERY.items() if "here." in text))
def test_tables_named_by_node_are_only_read(name: str) -> None:
    assert not re.search(r"\b(?:INSERT|UPDATE|DELETE|TRUNCATE|SHARE)\b", EVERY[name])
    named = set(re.findall(r"(?:FROM|JOIN) ([a-z_]+)\b(?!\.)", EVERY[name]))
    assert named.isdisjoint(TABLES - REFERENCE), "one table by name, one not"


@pytest.mark.parametrize("name", sorted(ACROSS))
def test_statements_across_tenants_stay_on_a_node(name: str) -> None:
    """It reads the rows on that node, or names the tenants."""
    text = EVERY[name]
    if find_tables(text) - REFERENCE and not text.startswith("INSERT"):
        assert "here." in text or _BOUND.search(text), name
