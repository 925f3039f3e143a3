"""Deletion of an organisation: first credentials, then objects and data, last its row (docs/retention.md)."""

import asyncio
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from domain.orgs.model import Organisation
from domain.orgs.ports import Erasure
from ports.objects import ObjectStore

GRACE_SECONDS = 3.0
"""Pause before each pass in seconds, in which processes stop accepting the credentials and running work ends."""
MAX_PASSES = 10
"""Maximum number of passes over all data. Passes are repeated until one finds nothing, because writes may still run."""


class ErasureIncomplete(Exception):
    """The organisation still received new data while it was deleted. Run the deletion again."""


@dataclass(frozen=True, slots=True)
class ErasureReport:
    """Numbers of deleted rows by table, and number of deleted objects in the object store."""

    rows: Mapping[str, int]
    objects: int


@dataclass(frozen=True, slots=True)
class OrganisationEraser:
    """Service that deletes organisations with their data in both modes. A deletion can be interrupted and repeated.

    `key_prefixes` are the first parts of keys in the object store; the organisation's ID follows. `grace_seconds` is the wait
    before each pass in seconds.
    """

    erasure: Erasure
    objects: ObjectStore
    key_prefixes: Collection[str]
    grace_seconds: float = GRACE_SECONDS

    async def erase(self, organisation: Organisation) -> ErasureReport:
        """Delete the organisation and its data; return the numbers of deleted rows and objects.

        Raises ErasureIncomplete.
        """
        await self.erasure.revoke_access(organisation.id)
        rows: Counter[str] = Counter()
        objects = 0
        for _ in range(MAX_PASSES):
            await asyncio.sleep(self.grace_seconds)
            row_counts, object_count = (
                await self.erasure.delete_data(organisation.id),
                await self._delete_objects(organisation.id),
            )
            rows.update(row_counts)
            objects += object_count
            if not row_counts and not object_count:
                await self.erasure.delete_organisation(organisation.id)
                return ErasureReport(dict(sorted(rows.items())), objects)
        raise ErasureIncomplete

    async def _delete_objects(self, org: str) -> int:
        removed = 0
        for prefix in self.key_prefixes:
            async for page in self.objects.list_objects(f"{prefix}/{org}/"):
                for info in page:
                    await self.objects.delete(info.key)
                    removed += 1
        return removed
