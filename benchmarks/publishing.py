"""Events as runs write them, appended through the unit of work, for measuring what appending and delivering cost."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from domain.catalogue.differences import facets
from domain.events.model import Event, Provenance
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant

SUBJECTS = 500


@dataclass(slots=True)
class Publisher:
    """One source's offers of one tenant, whose prices and stock change in turn; no other publisher has the subjects.

    `versions` is where each subject stands; a transaction that was not committed is taken back with `undo`.
    """

    tenant: Tenant
    catalogue: str
    source: str = field(default_factory=lambda: new_id("src"))
    subjects: Sequence[tuple[str, str, str]] = ()
    """(offer, variant, product)."""
    versions: dict[str, int] = field(default_factory=dict)
    _turn: "itertools.cycle[tuple[str, str, str]] | None" = None

    def __post_init__(self) -> None:
        """Make the subjects unless they are given."""
        self.subjects = self.subjects or [(new_id("ofr"), new_id("var"), new_id("prod")) for _ in range(SUBJECTS)]
        self._turn = itertools.cycle(self.subjects)

    def few(self, count: int) -> None:
        """Only the first subjects change from now on, so that each changes often."""
        self._turn = itertools.cycle(self.subjects[:count])

    def next(self, count: int) -> list[Event]:
        """The next changes, each with an id, so that whoever appends them knows what to look for."""
        assert self._turn is not None
        provenance = Provenance(self.source, "mapped", 1.0, datetime.now(UTC))
        return [self._change(ids, provenance) for ids in itertools.islice(self._turn, count)]

    def undo(self, events: Sequence[Event]) -> None:
        """These were not committed: their versions come again."""
        for event in reversed(events):
            self.versions[event.subject] = event.version - 1

    def _change(self, ids: tuple[str, str, str], provenance: Provenance) -> Event:
        offer, variant, product = ids
        version = self.versions[offer] = self.versions.get(offer, 0) + 1
        price = 49_900 + version % 97 * 100
        fields = [("price", price - 100, price), ("quantity", version % 40, (version + 1) % 40)]
        return Event(
            type="offer.changed" if version > 1 else "offer.created",
            subject=offer,
            version=version,
            data={
                "id": offer, "variant": variant, "product": product, "source": self.source,
                "catalogue": self.catalogue, "location": "main", "availability": "in_stock",
            },
            id=new_id("evt"),
            fields=fields,
            provenance=provenance,
            facets=facets(fields),
            source=self.source,
            catalogue=self.catalogue,
            correlation_id="run_" + "0" * 22,
        )  # fmt: skip
