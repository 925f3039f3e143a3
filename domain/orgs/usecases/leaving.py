"""An organisation that leaves: its credentials first, then its objects and rows, then itself (docs/retention.md)."""

import asyncio
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from domain.orgs.model import Organisation
from domain.orgs.ports import Erasure
from ports.objects import Objects

GRACE = 3.0
"""Seconds until no process takes its credentials any more, and what was under way has met that its jobs are gone."""
PASSES = 10
"""Somebody may still be writing: it is gone through again until a pass finds nothing."""


class StillWritten(Exception):
    """After many passes there was still something new; run it again."""


@dataclass(frozen=True, slots=True)
class Erased:
    """What went: rows by table, and objects."""

    rows: Mapping[str, int]
    objects: int


@dataclass(frozen=True, slots=True)
class Leaving:
    """Deletes all of an organisation, in both modes. It may be ended and run again at any point; `prefixes` begin its objects' keys."""

    erasure: Erasure
    objects: Objects
    prefixes: Collection[str]
    grace: float = GRACE

    async def erase(self, organisation: Organisation) -> Erased:
        """Erase the organisation's rows and objects. Raises StillWritten."""
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
