"""Copies of listed products for other organisations, which change in the transaction that changes the products."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from domain.catalogue.model import Product, Visibility
from domain.catalogue.ports import PublishedCopies
from domain.catalogue.publication import list_publication_events
from domain.events.model import Event, FieldChange
from ports.unit_of_work import Tx


async def refresh_listed(tx: Tx, products: Iterable[Product]) -> list[Event]:
    """Update the copies of those products that are listed; return the events of products that became visible or left."""
    return await refresh_copies(tx, [product.id for product in products if product.visibility == Visibility.LISTED])


@dataclass(frozen=True, slots=True)
class VisibilityOutcome:
    """Result of a change of visibility: IDs of changed, unchanged and unshareable products, and the events."""

    changed: Sequence[str]
    unchanged: Sequence[str]
    unshareable: Sequence[str]
    events: Sequence[Event]


async def change_visibility(tx: Tx, products: Collection[str], visibility: Visibility) -> VisibilityOutcome:
    """Change the visibility of products and update their copies. The caller must append the events.

    Products whose data must not leave the organisation are not listed. IDs that do not exist are ignored.

    Args:
        tx: The transaction, with `lock_for_writing`.
        products: The IDs of the products.
        visibility: The new visibility.
    """
    copies = tx[PublishedCopies]
    states = await copies.lock_states(sorted(products))
    unshareable = [state.id for state in states if visibility == Visibility.LISTED and not state.is_shareable]
    unchanged = [state.id for state in states if state.visibility == visibility]
    changed = [state for state in states if state.id not in {*unshareable, *unchanged}]
    ids = [state.id for state in changed]
    events: list[Event] = []
    if ids:
        await copies.set_visibility(ids, visibility)
        events = await refresh_copies(
            tx, ids, {state.id: state.visibility for state in changed if state.merged_into is None}
        )
    return VisibilityOutcome(ids, [id for id in unchanged if id not in unshareable], unshareable, events)


async def refresh_copies(
    tx: Tx, products: Collection[str], previous_visibilities: Mapping[str, Visibility] | None = None
) -> list[Event]:
    """Update the copies of products; return the events of products that became visible to other organisations, or left.

    Args:
        tx: The transaction.
        products: The IDs of products whose rows and documents are up to date.
        previous_visibilities: Visibilities of products before the transaction changed them.
    """
    if not products:
        return []
    copies, previous = tx[PublishedCopies], previous_visibilities or {}
    states = {state.id: state for state in await copies.lock_states(sorted(products))}
    visible = [id for id, state in states.items() if state.should_have_copy]
    appeared = [id for id in visible if not states[id].has_copy]
    hidden = [id for id, state in states.items() if state.has_copy and not state.should_have_copy]
    representatives = {states[id].merged_into for id in hidden} - {None}
    merged = {
        state.id for state in await copies.lock_states(sorted(map(str, representatives))) if state.should_have_copy
    }
    # the event of the merge says that such a product is represented by another visible one
    left = [id for id in hidden if states[id].merged_into not in merged]
    changed = {*appeared, *left, *previous}
    if changed:
        await copies.advance_versions(sorted(changed))
    if visible:
        await copies.write(visible)
    if hidden:
        await copies.remove(hidden)
    events: list[Event] = []
    documents = await copies.get_documents(appeared) if appeared else {}
    for id in sorted(changed):
        state = states[id]
        if id in documents:
            events += list_publication_events(documents[id], state.source)
            continue
        is_left = id in left
        was = previous.get(id)
        events.append(
            Event(
                "product.withdrawn" if is_left else "product.updated", id, state.version + 1, {"id": id},
                fields=[] if is_left or was is None else [FieldChange("visibility", was, state.visibility)],
                source=state.source, catalogue=state.catalogue, is_published=is_left,
            )
        )  # fmt: skip
    return events
