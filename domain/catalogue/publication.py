"""Publication of products: which products other organisations can read, and the events of their publication."""

from collections.abc import Iterable, Iterator, Mapping
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
    """State of a product that determines whether other organisations can read it.

    Attributes:
        id: The ID of the product.
        source: The source of the product.
        catalogue: The catalogue of the product.
        version: The version of the product.
        visibility: The visibility that the vendor has chosen.
        is_shareable: Whether no data of the product, and of products merged with it, must stay in the organisation.
        is_group_listed: Whether the product, and all products merged with it, are listed.
        merged_into: The product that represents it; None if it is not merged into another.
        has_copy: Whether other organisations can read the product now.
        has_reference: Whether other organisations that read the product receive the one into which it was merged.
    """

    id: str
    source: str
    catalogue: str
    version: int
    visibility: Visibility
    is_shareable: bool
    is_group_listed: bool
    merged_into: str | None
    has_copy: bool
    has_reference: bool

    @property
    def should_have_copy(self) -> bool:
        """True if other organisations should be able to read the product."""
        return self.is_group_listed and self.is_shareable and self.merged_into is None


def mark_published(events: Iterable[Event], states: Mapping[str, PublicationState]) -> None:
    """Mark the events that other organisations may read.

    These are changes of products that were readable before the transaction and still are, and merges of products that were
    readable before. `refresh_copies` creates other events for products that become readable or stop being so.

    Args:
        events: The events of a transaction.
        states: The states of their products after the changes; `has_copy` and `has_reference` describe the copies before them.
    """
    for event in events:
        is_merge = event.type in ("product.merged", "variant.merged")
        product = event.data.get("previous_product") if event.type == "variant.merged" else event.product
        state = states.get(product or "")
        if state is not None and state.has_copy:
            event.is_published = state.should_have_copy or is_merge


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


def build_refresh_lane(tenant: Tenant) -> str:
    """Return the lane of the jobs that update copies; they do not wait for publication runs."""
    return f"refresh:{tenant.mode}"


def create_assessment_job(tenant: Tenant) -> NewJob:
    """Return the job that assesses the completeness of the catalogue."""
    return NewJob(ASSESS_CATALOGUE, build_publishing_lane(tenant), tenant, key=ASSESS_CATALOGUE)


def create_refresh_job(source: str, tenant: Tenant) -> NewJob:
    """Return the job that updates the copies of a source's products.

    It has no key: a change during one job needs another one.
    """
    return NewJob(REFRESH_SOURCE, build_refresh_lane(tenant), tenant, {"source": source})
