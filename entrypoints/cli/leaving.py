"""`joinery org export` and `joinery org delete`: an organisation's data as files, and its leaving for good."""

import argparse
import asyncio
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import msgspec

from adapters.files.packing import GzipPacker
from adapters.postgres.erasing import PostgresErasure
from domain.catalogue.ports import CatalogueStore
from domain.exports.model import MANIFEST, PRODUCTS
from domain.kernel.lines import Lines
from domain.kernel.tenancy import Tenant
from domain.orgs.usecases.leaving import Leaving, StillWritten
from domain.storage.model import KEPT_IN_OBJECTS
from entrypoints.areas.registry import AREAS
from entrypoints.cli.errors import CommandError
from entrypoints.cli.orgs import answered, container, found_organisation
from entrypoints.datasets import ListDatasets


async def export(options: argparse.Namespace) -> int:
    """A folder for each mode, a file for each dataset, as an organisation export has them: each mode of one moment."""
    folder = _fresh(options.to)
    told: dict[str, Any] = {}
    async with container(options) as parts:
        organisation = await found_organisation(parts, options.org)
        datasets = ListDatasets(lambda: AREAS, parts.assembled())
        for mode, livemode in (("live", True), ("test", False)):
            place, manifest = folder / mode, []
            place.mkdir(parents=True, mode=0o700)
            async with parts.uow().snapshot(Tenant(organisation.id, livemode)) as tx:
                for name in datasets.names:
                    lines = tx[CatalogueStore].lines(None) if name == PRODUCTS else datasets.lines(tx, name)
                    manifest.append(await _written(place / f"{name}.jsonl.gz", name, lines))
            (place / f"{MANIFEST}.json").write_bytes(msgspec.json.format(msgspec.json.encode(manifest)))
            told[mode] = manifest
    rows = sum(file["rows"] for manifest in told.values() for file in manifest)
    answer = {"organisation": organisation.id, "folder": str(folder), **told}
    return answered(options, answer, f"Wrote {rows:,} rows of {organisation.name} to {folder}.")


def _fresh(folder: Path) -> Path:
    """A folder that has nothing in it yet. Raises CommandError."""
    if folder.exists() and any(folder.iterdir()):
        raise CommandError(f"{folder} is not empty; name a new folder.")
    return folder


async def _written(path: Path, dataset: str, lines: AsyncGenerator[Lines, None]) -> dict[str, Any]:
    """One file, which gets its name once it is whole; answers what the manifest says of it."""
    packer, rows = GzipPacker(), 0
    partial = path.with_suffix(".partial")
    with partial.open("xb") as file:
        async for portion in lines:
            rows += portion.rows
            file.write(await asyncio.to_thread(packer.pack, portion.data))
        file.write(packer.end())
    partial.rename(path)
    return {"dataset": dataset, "rows": rows, "bytes": packer.size, "sha256": packer.sha256}


async def delete(options: argparse.Namespace) -> int:
    """Everything of it, from rows, objects and logs. Backups keep what they hold."""
    async with container(options) as parts:
        organisation = await found_organisation(parts, options.org)
        if options.confirm != organisation.name:
            raise CommandError(
                f"This deletes {organisation.name} ({organisation.id}) for good. If you mean it, add --confirm with its exact name."
            )
        if not options.json:
            print(f"Deleting {organisation.name}: its keys end now, the rest follows …", file=sys.stderr)
        leaving = Leaving(PostgresErasure(parts.pool()), parts.objects(), KEPT_IN_OBJECTS)
        try:
            erased = await leaving.erase(organisation)
        except StillWritten:
            raise CommandError("Something still writes for it; nothing can be used any more. Run this again.") from None
    answer = {"organisation": organisation.id, "rows": dict(erased.rows), "objects": erased.objects}
    rows = sum(erased.rows.values())
    return answered(options, answer, f"Deleted {organisation.name}: {rows:,} rows, {erased.objects:,} objects.")
