"""Images in store: what products name, where it is fetched, and what of it is shown in documents."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from domain.media.model import Address, Image, NamedMedia


class MediaStore(Protocol):
    """In a tenant's transaction."""

    async def image(self, id: str) -> Image | None:
        """A stored image that a product names."""
        ...

    async def named(self, source: str, since: datetime, before: str | None, limit: int) -> Sequence[NamedMedia]:
        """What the source's products that changed since then name, the newest first, from behind `before` (None: all)."""
        ...

    async def register(
        self, uses: Mapping[str, Collection[str]], addresses: Sequence[Address], stale: datetime
    ) -> Sequence[str]:
        """Put down which products use which addresses, and nothing else any more; answers keys of objects to free.

        New addresses are due at once, and so are those that were last looked at before `stale`. An address that no
        product uses is forgotten, and an image that no address leads to.
        """
        ...

    async def due(self, host: str, limit: int) -> Sequence[Address]:
        """Addresses of the host that are due, the longest due first."""
        ...

    async def next_due(self, host: str) -> datetime | None:
        """When the host's next address falls due."""
        ...

    async def by_content(self, content: str) -> Image | None:
        """The image of that content, kept from being forgotten until the transaction ends."""
        ...

    async def add(self, image: Image) -> bool:
        """Put down an image; False when there is one of its content already."""
        ...

    async def found(self, address: Address, image: str) -> Sequence[str]:
        """The address leads to the image; documents that name it must be made anew. Answers keys of objects to free.

        Nothing happens when the address was forgotten meanwhile.
        """
        ...

    async def knows(self, address: str) -> bool:
        """Whether the address is still used; it is locked until the transaction ends."""
        ...

    async def unchanged(self, address: str) -> None:
        """The address was looked at, and leads where it led."""
        ...

    async def failed(self, address: str, tries: int, failure: str, again: datetime | None) -> None:
        """The address led nowhere for the `tries`-th time; None: it is given up."""
        ...

    async def origin_failed(
        self, host: str, origin: str, failure: str, delays: Sequence[timedelta]
    ) -> Mapping[str, int]:
        """Everything of the host below `origin` that is due failed once more, and waits by how often it has; beyond `delays` it is given up.

        Answers how many addresses of each run are given up.
        """
        ...

    async def postpone(self, host: str, until: datetime) -> None:
        """Nothing of the host is due before then."""
        ...

    async def show(self, limit: int) -> int:
        """Make documents anew whose images changed, at most `limit` of them; answers how many.

        Products that somebody else holds are passed by: they stay to be done.
        """
        ...

    async def unshown(self) -> bool:
        """Whether there are documents that must be made anew."""
        ...
