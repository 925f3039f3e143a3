"""Deletion of an organisation: credentials first, then objects and rows, then its own row (docs/retention.md)."""

import asyncio
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from domain.orgs.model import Organisation
from domain.orgs.ports import Erasure
from ports.objects import Objects

GRACE = 3.0
"""Seconds until no process accepts its credentials and running work has ended."""
PASSES = 10
"""Maximum passes: writes may still be in progress, so passes repeat until one finds nothing."""


class StillWritten(Exception):
    """The last pass still found new data; run the deletion again."""


@dataclass(frozen=True, slots=True)
class Erased:
    """What was deleted: rows by table, and objects."""

    rows: Mapping[str, int]
    objects: int


@dataclass(frozen=True, slots=True)
class Leaving:
    """Deletion of an organisation's data in both modes, safe to interrupt and repeat.

    `prefixes` are those of object keys.
    """

    erasure: Erasure
    objects: Objects
    prefixes: Collection[str]
    grace: float = GRACE

    async def erase(self, organisation: Organisation) -> Erased:
        """Delete the organisation. Raises StillWritten."""
        await self.erasure.close(organisation.id)
        rows: Counter[str] = Counter()
        objects = 0
        for _ in range(PASSES):
            await asyncio.sleep(self.grace)
            gone, removed = await self.erasure.erase(organisation.id), await self._remove(organisation.id)
            rows.update(gone)
            objects += removed
            if not gone and not removed:
                await self.erasure.forget(organisation.id)
                return Erased(dict(sorted(rows.items())), objects)
        raise StillWritten

    async def _remove(self, org: str) -> int:
        removed = 0
        for prefix in self.prefixes:
            async for page in self.objects.list(f"{prefix}/{org}/"):
                for info in page:
                    await self.objects.delete(info.key)
                    removed += 1
        return removed
