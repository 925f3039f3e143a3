"""Which products use which images, in memory: what their documents are made of."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from adapters.memory.table import Table, Transaction
from domain.media.model import Address, Image


@dataclass(frozen=True, slots=True)
class KnownAddress:
    """An address, when it is due, and when it was looked at."""

    of: Address
    due_at: datetime | None
    checked_at: datetime | None = None
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class Use:
    """A product uses an address; `stale` says that its document must be made anew."""

    product: str
    address: str
    stale: bool


IMAGES: Final = Table[Image]("images", lambda image: image.id, unique=lambda image: image.content)
ADDRESSES: Final = Table[KnownAddress]("image_addresses", lambda known: known.of.address, descending=False)
USES: Final = Table[Use]("image_uses", lambda use: f"{use.product} {use.address}", descending=False)


def images_of(transaction: Transaction, product: str) -> dict[str, str]:
    """The stored images of a product by their address."""
    addresses = transaction.rows(ADDRESSES)
    known = [addresses.get(use.address) for use in transaction.rows(USES).where(lambda use: use.product == product)]
    return {one.of.url: one.of.image for one in known if one is not None and one.of.image is not None}
