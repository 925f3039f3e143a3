"""What an organisation's export is made of."""

from collections.abc import AsyncGenerator, Sequence
from typing import Protocol

from domain.kernel.lines import Lines
from ports.unit_of_work import Tx


class Datasets(Protocol):
    """What of an organisation its export holds beside the products: each line as that dataset's API read answers it."""

    @property
    def names(self) -> Sequence[str]:
        """The datasets, `products` among them, in the order of their files."""
        ...

    @property
    def scopes(self) -> frozenset[str]:
        """The permissions that reading all of them takes."""
        ...

    def lines(self, tx: Tx, dataset: str) -> AsyncGenerator[Lines, None]:
        """All of a dataset, in portions."""
        ...
