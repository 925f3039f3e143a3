"""`joinery org delete`: an organisation leaves for good."""

import argparse
import sys

from adapters.postgres.erasing import PostgresErasure
from domain.orgs.usecases.leaving import Leaving, StillWritten
from domain.storage.model import KEPT_IN_OBJECTS
from entrypoints.cli.errors import CommandError
from entrypoints.cli.operators import answered, container, found_organisation


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
