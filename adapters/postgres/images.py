"""The stored images of products, as runs ask for them that render documents."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from adapters.postgres.session import Session, texts
from adapters.postgres.sqlfile import statements

SQL: Final = statements("media")


async def images_of(session: Session, products: Iterable[str]) -> dict[str, dict[str, str]]:
    """The stored images of products by their address; products without any are left out."""
    found: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for product, url, image in await session.all(SQL["images_of"], ids=texts(products)):
        found[product][url] = image
    return found
