"""Commands for organisations: create, list, change the plan, match again, export, delete."""

import asyncio
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter

from adapters.files.compression import GzipCompressor
from adapters.postgres.erasure import PostgresErasure
from adapters.postgres.nodes.pool import Pool
from domain.audit.model import Change
from domain.audit.ports import AuditLog
from domain.billing.usecases.accounts import BillingService
from domain.catalogue.ports import CatalogueStore
from domain.exports.model import MANIFEST, PRODUCTS
from domain.jobs.ports import JobStore
from domain.kernel.errors import DomainError
from domain.kernel.lines import Lines
from domain.kernel.tenancy import Tenant
from domain.matching.index import create_matching_job
from domain.matching.ports import MatchIndexStore
from domain.orgs.model import ORGANISATION_KINDS, Organisation, Plan
from domain.orgs.ports import OrgRegistry
from domain.orgs.usecases.erasure import ErasureIncomplete, OrganisationEraser
from domain.storage.model import OBJECT_PREFIXES
from entrypoints.areas.registry import AREAS
from entrypoints.cli.store import DEFAULT_OPTIONS, CommandOptions, Mode, OrganisationOptions, select_attributes
from entrypoints.datasets import OperationDatasets
from entrypoints.dependencies import Dependencies
from entrypoints.errors import CommandError
from entrypoints.provisioning import begin_operator_change, create_organisation
from ports.objects import ObjectStore
from ports.unit_of_work import UnitOfWork


async def create(
    *,
    name: str,
    kind: Annotated[str, Parameter(choices=ORGANISATION_KINDS)],
    plan: str = "free",
    options: CommandOptions = DEFAULT_OPTIONS,
) -> int:
    """Create an organisation.

    Args:
        name: Name of the organisation.
        kind: Kind of the organisation.
        plan: Plan of the organisation: free, standard, high or max.
    """
    async with options.open_dependencies() as dependencies:
        organisation = await create_organisation(dependencies, name, kind, await _find_plan(dependencies, plan))
    result = _build_organisation_json(organisation) | {
        "catalogues": {"live": organisation.catalogues[0], "test": organisation.catalogues[1]}
    }
    return options.print_result(result, f"Created {organisation.name} ({organisation.id}).")


def _build_organisation_json(organisation: Organisation) -> dict[str, Any]:
    """Return an organisation as JSON."""
    return select_attributes(organisation, "name", "kind") | {
        "organisation": organisation.id,
        "plan": organisation.plan.code,
    }


async def _find_plan(dependencies: Dependencies, code: str) -> Plan:
    """Return the plan with the code. Raises CommandError if there is none."""
    plan: Plan | None = await dependencies[OrgRegistry].find_plan(code)
    if plan is None:
        raise CommandError(f"There is no plan {code!r}. Use free, standard, high or max.")
    return plan


async def list_all(*, options: CommandOptions = DEFAULT_OPTIONS) -> int:
    """List organisations with ID, plan, kind and name."""
    async with options.open_dependencies() as dependencies:
        organisations = await dependencies[OrgRegistry].list_by_name("")
    lines = [f"{row.id}  {row.plan.code:<9} {row.kind:<9} {row.name}" for row in organisations]
    result = {"organisations": [_build_organisation_json(one) for one in organisations]}
    return options.print_result(result, *lines or ["No organisations."])


async def change_plan(*, plan: str, options: OrganisationOptions) -> int:
    """Change an organisation's plan, with effect from its next request.

    Args:
        plan: New plan: free, standard, high or max. GET /v1/plans lists what each includes.
    """
    async with options.open_organisation() as (dependencies, organisation):
        if organisation.bills_overage:
            raise CommandError("The organisation's subscription determines its plan. It must be cancelled first.")
        await dependencies[OrgRegistry].change_plan(organisation.id, await _find_plan(dependencies, plan))
        before = organisation.plan.code
        async with begin_operator_change(dependencies, organisation, "orgs.change_plan") as tx:
            await tx[AuditLog].add(Change("organisation", organisation.id, "update", {"plan": before}, {"plan": plan}))
    result = {"organisation": organisation.id, "plan": plan, "before": before}
    return options.print_result(result, f"{organisation.name} now has the plan {plan} (previously {before}).")


async def rematch(*, mode: Mode = "live", options: OrganisationOptions) -> int:
    """Match all variants again, with newly estimated weights of the comparisons. Decisions by people do not change.

    Args:
        mode: Mode whose variants are matched.
    """
    async with options.begin_change("matching.rematch", mode) as (_, organisation, tx):
        queued = await tx[MatchIndexStore].delete_model_and_requeue()
        await tx[JobStore].add(create_matching_job(tx.tenant))
        await tx[AuditLog].add(Change("organisation", organisation.id, "update", {}, {"rematched": queued}))
    result = {"organisation": organisation.id, "mode": mode, "variants": queued}
    return options.print_result(result, f"{queued:,} variants of {organisation.name} are queued for matching.")


async def export(*, to: Path, options: OrganisationOptions) -> int:
    """Export all of an organisation's data to a folder, with a subfolder per mode and a file per dataset.

    Args:
        to: Path of a new folder.
    """
    if to.exists() and any(to.iterdir()):  # noqa: ASYNC240  a command has no other tasks
        raise CommandError(f"{to} is not empty. Use a new folder.")
    manifests: dict[str, Any] = {}
    async with options.open_organisation() as (dependencies, organisation):
        datasets = OperationDatasets(lambda: AREAS, dependencies)
        for mode in ("live", "test"):
            folder, manifest = to / mode, []
            folder.mkdir(parents=True, mode=0o700)
            async with dependencies[UnitOfWork].begin_snapshot(Tenant(organisation.id, mode == "live")) as tx:
                for name in datasets.names:
                    lines = (
                        tx[CatalogueStore].stream_documents(None)
                        if name == PRODUCTS
                        else datasets.stream_lines(tx, name)
                    )
                    manifest.append(await _write_dataset(folder / f"{name}.jsonl.gz", name, lines))
            (folder / f"{MANIFEST}.json").write_bytes(msgspec.json.format(msgspec.json.encode(manifest)))
            manifests[mode] = manifest
    rows = sum(file["rows"] for manifest in manifests.values() for file in manifest)
    result = {"organisation": organisation.id, "folder": str(to), **manifests}
    return options.print_result(result, f"Wrote {rows:,} rows of {organisation.name} to {to}.")


async def _write_dataset(path: Path, dataset: str, lines: AsyncGenerator[Lines, None]) -> dict[str, Any]:
    """Write a dataset to a gzipped file; return the file's entry in the manifest.

    The file has a temporary name until it is complete.
    """
    compressor, rows = GzipCompressor(), 0
    partial = path.with_suffix(".partial")
    with partial.open("xb") as file:
        async for chunk in lines:
            rows += chunk.rows
            file.write(await asyncio.to_thread(compressor.compress, chunk.data))
        file.write(compressor.finish())
    partial.rename(path)
    return {"dataset": dataset, "rows": rows, "bytes": compressor.size, "sha256": compressor.sha256}


async def delete(*, confirm: str | None = None, options: OrganisationOptions) -> int:
    """Delete an organisation and all its data permanently. Existing backups are not changed.

    Args:
        confirm: Exact name of the organisation, to confirm the deletion.
    """
    async with options.open_organisation() as (dependencies, organisation):
        if confirm != organisation.name:
            raise CommandError(
                f"This deletes {organisation.name} ({organisation.id}) permanently. To confirm, add --confirm with its exact name."
            )
        if not options.json:
            print(f"Deleting {organisation.name}: revoking its keys, then deleting its data …", file=sys.stderr)
        erasure = PostgresErasure(dependencies[Pool])
        eraser = OrganisationEraser(erasure, dependencies[ObjectStore], OBJECT_PREFIXES)
        try:
            await erasure.revoke_access(organisation.id)
            await dependencies[BillingService].delete_customer(Tenant(organisation.id, True))
            erased = await eraser.erase(organisation)
        except DomainError as error:
            raise CommandError(
                f"The customer was not deleted at the payment provider, so that the subscription may continue: {error}"
            ) from error
        except ErasureIncomplete:
            raise CommandError(
                "Some processes are still writing data of the organisation. Its credentials are revoked. Run the command "
                "again."
            ) from None
    result = {"organisation": organisation.id, "rows": dict(erased.rows), "objects": erased.objects}
    rows = sum(erased.rows.values())
    return options.print_result(result, f"Deleted {organisation.name}: {rows:,} rows, {erased.objects:,} objects.")
