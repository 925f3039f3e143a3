"""Publication of products: which products other organisations can read, and the events of their publication."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from domain.catalogue.differences import PRICE_FIELDS, STOCK_FIELDS, list_created_fields
from domain.catalogue.model import Visibility
from domain.events.model import Event
from domain.jobs.model import NewJob
from domain.kernel.tenancy import Tenant

ASSESS_CATALOGUE = "publishing.assess"
"""Kind of the jobs that assess the completeness of a catalogue."""
REFRESH_SOURCE = "publishing.refresh_source"
"""Kind of the jobs that update the copies of a source's products after a change of its licence basis."""
_OFFER_FIELDS = (*PRICE_FIELDS, *STOCK_FIELDS, "availability", "withdrawn_at")


@dataclass(frozen=True, slots=True)
class PublicationState:
    """What determines whether other organisations can read a product.

    Attributes:
        id: The ID of the product.
        source: The source of the product.
        catalogue: The catalogue of the product.
        version: The version of the product.
        visibility: The visibility that the vendor has chosen.
        is_shareable: Whether no data of the product, and of products merged with it, must stay in the organisation.
        merged_into: The product that represents it; None if it is not merged into another.
        has_copy: Whether other organisations can read the product now.
    """

    id: str
    source: str
    catalogue: str
    version: int
    visibility: Visibility
    is_shareable: bool
    merged_into: str | None
    has_copy: bool

    @property
    def should_have_copy(self) -> bool:
        """True if other organisations should be able to read the product."""
        return self.visibility == Visibility.LISTED and self.is_shareable and self.merged_into is None


def list_publication_events(document: Mapping[str, Any], source: str) -> Iterator[Event]:
    """Yield the events of a product that became visible: the product, its variants, and their offers, with all fields.

    Args:
        document: The document of the product.
        source: The source of the product.
    """
    product, catalogue = str(document["id"]), str(document["catalogue"])
    yield Event(
        "product.published", product, document["version"], {"id": product},
        fields=list_created_fields(document["data"]), source=source, catalogue=catalogue, is_published=True,
    )  # fmt: skip
    for variant in document["variants"]:
        yield Event(
            "variant.created", variant["id"], variant["version"], {"id": variant["id"], "product": product},
            fields=list_created_fields(variant["data"]), source=source, catalogue=catalogue, is_published=True,
        )  # fmt: skip
        for offer in variant["offers"]:
            ids = {"id": offer["id"], "variant": variant["id"], "product": product}
            ids |= {name: offer[name] for name in ("source", "location", "availability")}
            yield Event(
                "offer.created", offer["id"], offer["version"], ids,
                fields=list_created_fields({name: offer[name] for name in _OFFER_FIELDS if name in offer}, ""),
                source=offer["source"], catalogue=catalogue, is_published=True,
            )  # fmt: skip


def build_publishing_lane(tenant: Tenant) -> str:
    """Return the lane of the jobs of publication, which are executed one after the other."""
    return f"publishing:{tenant.mode}"


def create_assessment_job(tenant: Tenant) -> NewJob:
    """Return the job that assesses the completeness of the catalogue."""
    return NewJob(ASSESS_CATALOGUE, build_publishing_lane(tenant), tenant, key=ASSESS_CATALOGUE)


def create_refresh_job(source: str, tenant: Tenant) -> NewJob:
    """Return the job that updates the copies of a source's products."""
    return NewJob(
        REFRESH_SOURCE, build_publishing_lane(tenant), tenant, {"source": source}, key=f"{REFRESH_SOURCE}:{source}"
    )
