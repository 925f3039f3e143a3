"""Who may PUT bytes now: an organisation's rate, how many at a time, and only to uploads that wait for them."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from math import ceil
from typing import Final

from domain.kernel.errors import Conflict, RateLimited
from domain.kernel.tenancy import Tenant
from domain.storage.model import tenant_of
from domain.uploads.usecases import UploadService
from entrypoints.http.steps.rate_limit import TIERS
from ports.limits import Budget, Limits
from ports.unit_of_work import UnitOfWork

AT_ONCE: Final = 4
"""PUTs of one organisation that a process takes at a time, each to another key."""
WAIT: Final = 5
"""Retry-After in seconds for one more."""


class ObjectAdmission:
    """A link carries its own permission, so this stands where the pipeline stands for the API."""

    def __init__(self, uow: UnitOfWork, limits: Limits, uploads: UploadService) -> None:
        self._uow, self._limits, self._uploads = uow, limits, uploads
        self._keys: set[str] = set()
        self._orgs: Counter[str] = Counter()

    @asynccontextmanager
    async def put(self, key: str) -> AsyncIterator[None]:
        """For as long as the bytes of one PUT are taken in.

        Raises RateLimited, and Conflict when the upload awaits no bytes or when they are being sent already.
        """
        tenant = tenant_of(key)
        if tenant is None:
            yield
            return
        await self._charge(tenant)
        async with self._uow.read(tenant) as tx:
            await self._uploads.refuse_bytes(tx, key.rpartition("/")[2])
        if key in self._keys:
            raise Conflict("The bytes of this upload are being sent already; wait until that is over.")
        if self._orgs[tenant.org] >= AT_ONCE:
            raise RateLimited(f"{AT_ONCE} files are being sent already; send this one after them.", retry_after=WAIT)
        self._keys.add(key)
        self._orgs[tenant.org] += 1
        try:
            yield
        finally:
            self._keys.remove(key)
            self._orgs -= Counter({tenant.org: 1})

    async def _charge(self, tenant: Tenant) -> None:
        """As many as a plan of the tier `standard` may write: links do not say which tier the organisation is on."""
        per_second, burst = TIERS["standard"]["write"]
        key = f"{tenant.org}:{tenant.mode}:objects"
        take = await self._limits.take(Budget(key, burst, per_second))
        if not take.allowed:
            raise RateLimited("Files are sent too fast; nothing was taken.", retry_after=max(1, ceil(take.next_in)))
