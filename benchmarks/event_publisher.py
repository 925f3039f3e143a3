"""Publisher of offer events as runs write them, for benchmarks and soak tests."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from domain.catalogue.differences import find_affected_facets
from domain.events.model import Event, Provenance
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant

SUBJECTS = 500


@dataclass(slots=True)
class Publisher:
    """Generator of events of one source, whose offers change price and stock in turn.

    Attributes:
        tenant: Tenant that owns the source.
        catalogue: ID of the catalogue.
        source: ID of the source.
        subjects: IDs of the offers, each with variant and product; new ones by default.
        versions: Current version of each offer. Call `roll_back` if the transaction of generated events is not
            committed.
    """

    tenant: Tenant
    catalogue: str
    source: str = field(default_factory=lambda: new_id("src"))
    subjects: Sequence[tuple[str, str, str]] = ()
    versions: dict[str, int] = field(default_factory=dict)
    _subject_cycle: "itertools.cycle[tuple[str, str, str]] | None" = None

    def __post_init__(self) -> None:
        """Create the subjects, unless they are given."""
        self.subjects = self.subjects or [(new_id("ofr"), new_id("var"), new_id("prod")) for _ in range(SUBJECTS)]
        self._subject_cycle = itertools.cycle(self.subjects)

    def restrict_subjects(self, count: int) -> None:
        """Change only the first `count` subjects from now on, so that each changes often."""
        self._subject_cycle = itertools.cycle(self.subjects[:count])

    def generate_events(self, count: int) -> list[Event]:
        """Return the next `count` events; they already have IDs, so that the caller can recognise them."""
        assert self._subject_cycle is not None
        provenance = Provenance(self.source, "mapped", 1.0, datetime.now(UTC))
        return [self._build_event(ids, provenance) for ids in itertools.islice(self._subject_cycle, count)]

    def roll_back(self, events: Sequence[Event]) -> None:
        """Restore the versions before the given events, whose transaction was not committed."""
        for event in reversed(events):
            self.versions[event.subject] = event.version - 1

    def _build_event(self, ids: tuple[str, str, str], provenance: Provenance) -> Event:
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
            facets=find_affected_facets(fields),
            source=self.source,
            catalogue=self.catalogue,
            correlation_id="run_" + "0" * 22,
        )  # fmt: skip
