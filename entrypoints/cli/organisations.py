"""Commands for organisations: create, list, change the plan, match again, export, delete."""

import asyncio
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter

from adapters.files.packing import GzipPacker
from adapters.postgres.erasing import PostgresErasure
from adapters.postgres.nodes.pool import Pool
from domain.audit.model import Change
from domain.audit.ports import AuditLog
from domain.catalogue.ports import CatalogueStore
from domain.exports.model import MANIFEST, PRODUCTS
from domain.jobs.ports import JobStore
from domain.kernel.lines import Lines
from domain.kernel.tenancy import Tenant
from domain.matching.index import matching
from domain.matching.ports import MatchIndexStore
from domain.orgs.model import KINDS, Organisation, Plan
from domain.orgs.ports import OrgRegistry
from domain.orgs.usecases.leaving import Leaving, StillWritten
from domain.storage.model import KEPT_IN_OBJECTS
from entrypoints.areas.registry import AREAS
from entrypoints.cli.store import DEFAULT, Mode, OrganisationStore, Store, attributes
from entrypoints.datasets import ListDatasets
from entrypoints.dependencies import Dependencies
from entrypoints.errors import CommandError
from entrypoints.provisioning import begin, new_organisation
from ports.objects import Objects
from ports.unit_of_work import UnitOfWork


async def create(
    *, name: str, kind: Annotated[str, Parameter(choices=KINDS)], plan: str = "free", store: Store = DEFAULT
) -> int:
    """Create an organisation.

    Args:
        plan: free, standard, high or max
    """
    async with store.open() as parts:
        organisation = await new_organisation(parts, name, kind, await _find_plan(parts, plan))
    answer = _organisation_json(organisation) | {
        "catalogues": {"live": organisation.catalogues[0], "test": organisation.catalogues[1]}
    }
    return store.answer(answer, f"Created {organisation.name} ({organisation.id}).")


def _organisation_json(organisation: Organisation) -> dict[str, Any]:
    return attributes(organisation, "name", "kind") | {"organisation": organisation.id, "plan": organisation.plan.code}


async def _find_plan(parts: Dependencies, code: str) -> Plan:
    plan: Plan | None = await parts[OrgRegistry].plan(code)
    if plan is None:
        raise CommandError(f"There is no plan {code!r}. Use free, standard, high or max.")
    return plan


async def list_all(*, store: Store = DEFAULT) -> int:
    """List organisations with ID, plan, kind and name."""
    async with store.open() as parts:
        organisations = await parts[OrgRegistry].named("")
    lines = [f"{row.id}  {row.plan.code:<9} {row.kind:<9} {row.name}" for row in organisations]
    answer = {"organisations": [_organisation_json(one) for one in organisations]}
    return store.answer(answer, *lines or ["No organisations."])


async def change_plan(*, plan: str, store: OrganisationStore) -> int:
    """Change an organisation's plan, with effect from its next request.

    Args:
        plan: free, standard, high or max; see GET /v1/plans for their contents
    """
    async with store.find() as (parts, organisation):
        await parts[OrgRegistry].change_plan(organisation.id, await _find_plan(parts, plan))
        before = organisation.plan.code
        async with begin(parts, organisation, "orgs.change_plan") as tx:
            await tx[AuditLog].add(Change("organisation", organisation.id, "update", {"plan": before}, {"plan": plan}))
    answer = {"organisation": organisation.id, "plan": plan, "before": before}
    return store.answer(answer, f"{organisation.name} now has the plan {plan} (previously {before}).")


async def rematch(*, mode: Mode = "live", store: OrganisationStore) -> int:
    """Match all variants again, with newly estimated weights. People's decisions stay."""
    async with store.change("matching.rematch", mode) as (_, organisation, tx):
        queued = await tx[MatchIndexStore].requeue_all()
        await tx[JobStore].add(matching(tx.tenant))
        await tx[AuditLog].add(Change("organisation", organisation.id, "update", {}, {"rematched": queued}))
    answer = {"organisation": organisation.id, "mode": mode, "variants": queued}
    return store.answer(answer, f"{queued:,} variants of {organisation.name} are queued for matching.")


async def export(*, to: Path, store: OrganisationStore) -> int:
    """Export all of an organisation's data to a folder, with a subfolder per mode and a file per dataset.

    Args:
        to: a new folder
    """
    if to.exists() and any(to.iterdir()):  # noqa: ASYNC240  a command has no other tasks
        raise CommandError(f"{to} is not empty. Use a new folder.")
    manifests: dict[str, Any] = {}
    async with store.find() as (parts, organisation):
        datasets = ListDatasets(lambda: AREAS, parts)
        for mode in ("live", "test"):
            folder, manifest = to / mode, []
            folder.mkdir(parents=True, mode=0o700)
            async with parts[UnitOfWork].snapshot(Tenant(organisation.id, mode == "live")) as tx:
                for name in datasets.names:
                    lines = tx[CatalogueStore].lines(None) if name == PRODUCTS else datasets.lines(tx, name)
                    manifest.append(await _write(folder / f"{name}.jsonl.gz", name, lines))
            (folder / f"{MANIFEST}.json").write_bytes(msgspec.json.format(msgspec.json.encode(manifest)))
            manifests[mode] = manifest
    rows = sum(file["rows"] for manifest in manifests.values() for file in manifest)
    answer = {"organisation": organisation.id, "folder": str(to), **manifests}
    return store.answer(answer, f"Wrote {rows:,} rows of {organisation.name} to {to}.")


async def _write(path: Path, dataset: str, lines: AsyncGenerator[Lines, None]) -> dict[str, Any]:
    """Write one file under a temporary name, and rename it when it is complete; return its manifest entry."""
    packer, rows = GzipPacker(), 0
    partial = path.with_suffix(".partial")
    with partial.open("xb") as file:
        async for portion in lines:
            rows += portion.rows
            file.write(await asyncio.to_thread(packer.pack, portion.data))
        file.write(packer.end())
    partial.rename(path)
    return {"dataset": dataset, "rows": rows, "bytes": packer.size, "sha256": packer.sha256}


async def delete(*, confirm: str | None = None, store: OrganisationStore) -> int:
    """Delete an organisation and all its data permanently. Existing backups are not changed.

    Args:
        confirm: its exact name
    """
    async with store.find() as (parts, organisation):
        if confirm != organisation.name:
            raise CommandError(
                f"This deletes {organisation.name} ({organisation.id}) permanently. To confirm, add --confirm with its exact name."
            )
        if not store.json:
            print(f"Deleting {organisation.name}: revoking its keys, then deleting its data …", file=sys.stderr)
        leaving = Leaving(PostgresErasure(parts[Pool]), parts[Objects], KEPT_IN_OBJECTS)
        try:
            erased = await leaving.erase(organisation)
        except StillWritten:
            raise CommandError(
                "Some processes still write its data; its credentials are revoked. Run the command again."
            ) from None
    answer = {"organisation": organisation.id, "rows": dict(erased.rows), "objects": erased.objects}
    rows = sum(erased.rows.values())
    return store.answer(answer, f"Deleted {organisation.name}: {rows:,} rows, {erased.objects:,} objects.")
