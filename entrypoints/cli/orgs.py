"""What operators do: organisations, members, keys."""

import argparse
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from domain.access.model import SCOPES, ApiKey
from domain.access.ports import KeyStore
from domain.access.usecases import KeyRequest
from domain.audit.model import Change
from domain.audit.ports import AuditLog
from domain.jobs.ports import JobStore
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from domain.matching.ports import MatchIndexStore
from domain.matching.queueing import matching
from domain.orgs.model import Organisation, Plan
from domain.orgs.ports import OrgStore
from entrypoints import settings
from entrypoints.cli.errors import CommandError
from entrypoints.container import Container, opened
from entrypoints.up.attach import attach


def environment(options: argparse.Namespace) -> dict[str, str]:
    """The settings to work with: those of the service that runs on --data-dir, else this process's own."""
    env = settings.read_file_settings(os.environ)
    if options.data_dir is not None:
        env |= {"JOINERY_MIGRATE_DATABASE_URL": "", **attach(options.data_dir)}
    return env


@asynccontextmanager
async def container(options: argparse.Namespace) -> AsyncIterator[Container]:
    """The store that the options name, opened."""
    async with opened(settings.from_environment(environment(options))) as opened_container:
        yield opened_container


def answered(options: argparse.Namespace, answer: dict[str, Any], sentence: str) -> int:
    """Print the answer as JSON or as a sentence."""
    print(json.dumps(answer) if options.json else sentence)
    return 0


async def create_org(options: argparse.Namespace) -> int:
    """`joinery org create`."""
    async with container(options) as parts:
        organisation = await new_organisation(parts, options.name, options.kind, options.plan)
    answer = {
        "organisation": organisation.id,
        "name": organisation.name,
        "kind": organisation.kind,
        "plan": organisation.plan.code,
        "catalogues": {"live": organisation.catalogues[0], "test": organisation.catalogues[1]},
    }
    return answered(options, answer, f"Created {organisation.name} ({organisation.id}).")


async def new_organisation(parts: Container, name: str, kind: str, plan_code: str) -> Organisation:
    """Make and keep an organisation. Raises CommandError for an unknown plan."""
    plan = await found_plan(parts, plan_code)
    now = parts.clock().now()
    organisation = Organisation(new_id("org"), name, kind, plan, None, (new_id("cat"), new_id("cat")), now)
    await parts.registry().create(organisation)
    return organisation


async def found_plan(parts: Container, code: str) -> Plan:
    """The plan meant. Raises CommandError."""
    plan = await parts.registry().plan(code)
    if plan is None:
        raise CommandError(f"There is no plan {code!r}; take free, standard, high or max.")
    return plan


async def list_orgs(options: argparse.Namespace) -> int:
    """`joinery org list`."""
    async with container(options) as parts:
        organisations = await parts.registry().named("")
    answer = [
        {"organisation": one.id, "name": one.name, "kind": one.kind, "plan": one.plan.code} for one in organisations
    ]
    lines = [f"{one.id}  {one.plan.code:<9} {one.kind:<9} {one.name}" for one in organisations]
    return answered(options, {"organisations": answer}, "\n".join(lines) or "There is no organisation yet.")


async def change_plan(options: argparse.Namespace) -> int:
    """`joinery org plan`: what the organisation may use changes with its next request."""
    async with container(options) as parts:
        organisation = await found_organisation(parts, options.org)
        plan = await found_plan(parts, options.plan)
        await parts.registry().change_plan(organisation.id, plan)
        async with parts.uow().begin(Tenant(organisation.id, True), operator_call("orgs.change_plan")) as tx:
            old, new = {"plan": organisation.plan.code}, {"plan": plan.code}
            await tx[AuditLog].add(Change("organisation", organisation.id, "update", old, new))
    answer = {"organisation": organisation.id, "plan": plan.code, "before": organisation.plan.code}
    return answered(
        options, answer, f"{organisation.name} is on the plan {plan.code} now (was {organisation.plan.code})."
    )


async def rematch(options: argparse.Namespace) -> int:
    """`joinery org rematch`: everything is matched once more, with weights learnt anew; what people decided stays."""
    async with container(options) as parts:
        organisation = await found_organisation(parts, options.org)
        tenant = Tenant(organisation.id, options.mode == "live")
        async with parts.uow().begin(tenant, operator_call("matching.rematch")) as tx:
            queued = await tx[MatchIndexStore].requeue_all()
            await tx[JobStore].add(matching(tenant))
            await tx[AuditLog].add(Change("organisation", organisation.id, "update", {}, {"rematched": queued}))
    answer = {"organisation": organisation.id, "mode": options.mode, "variants": queued}
    return answered(options, answer, f"{queued:,} variants of {organisation.name} wait to be matched anew.")


async def found_organisation(parts: Container, id_or_name: str) -> Organisation:
    """The organisation meant. Raises CommandError."""
    organisation = await parts.registry().find(id_or_name)
    if organisation is None:
        alike = [one.id for one in await parts.registry().named(id_or_name)] if id_or_name else []
        if alike:
            raise CommandError(f"Several organisations are named {id_or_name!r}; use the id: {', '.join(alike)}.")
        raise CommandError(f"There is no organisation {id_or_name!r}; `joinery org list` shows them.")
    return organisation


def operator_call(operation: str) -> AuditContext:
    """Operators act as the service itself."""
    return AuditContext(Actor("service", "operator"), operation)


async def create_key(options: argparse.Namespace) -> int:
    """`joinery key create`."""
    async with container(options) as parts:
        organisation = await found_organisation(parts, options.org)
        tenant = Tenant(organisation.id, options.mode == "live")
        key, secret = await new_key(parts, tenant, options)
    answer = {"organisation": organisation.id, "key": key.id, "secret": secret}
    return answered(options, answer, f"Key {key.id}; its secret, shown only now: {secret}")


async def new_key(parts: Container, tenant: Tenant, options: argparse.Namespace) -> tuple[ApiKey, str]:
    """Make and keep a key; answers it and its secret. Raises CommandError, InvalidRequest."""
    scopes = SCOPES if options.scopes == "all" else frozenset(filter(None, options.scopes.split(",")))
    async with parts.uow().begin(tenant, operator_call("keys.create")) as tx:
        member = await tx[OrgStore].member(options.member) if options.member else None
        if options.member and member is None:
            raise CommandError(
                f"{options.member} is no member of the organisation; add them with `joinery member add`."
            )
        days = options.expires_in_days
        request = KeyRequest(
            name=options.name,
            restricted=options.restricted,
            scopes=scopes,
            role=member.role if member else "owner",
            networks=tuple(options.network),
            expires_at=tx.now + timedelta(days=days) if days else None,
            member=member.user if member else None,
        )
        key, secret = await parts.access().issue_key(tx, request)
        after = {"name": key.name, "scopes": sorted(key.scopes), "restricted": key.restricted, "last4": key.last4}
        await tx[AuditLog].add(Change("api_key", key.id, "create", {}, after))
    return key, secret


async def revoke_key(options: argparse.Namespace) -> int:
    """`joinery key revoke`."""
    async with container(options) as parts:
        organisation = await found_organisation(parts, options.org)
        tenant = Tenant(organisation.id, options.mode == "live")
        async with parts.uow().begin(tenant, operator_call("keys.revoke")) as tx:
            if not await tx[KeyStore].revoke(options.key):
                raise CommandError(f"The organisation has no key {options.key!r} in force in {options.mode} mode.")
            await tx[AuditLog].add(Change("api_key", options.key, "update", {"revoked": False}, {"revoked": True}))
    return answered(options, {"key": options.key, "revoked": True}, f"Revoked {options.key}.")
