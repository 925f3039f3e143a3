"""Copies of listed products for other organisations, which change in the transaction that changes the products."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from domain.catalogue.model import Product, Visibility
from domain.catalogue.ports import PublishedCopies
from domain.catalogue.publication import PublicationState, list_publication_events, mark_published
from domain.events.model import Event, FieldChange
from ports.unit_of_work import Tx


@dataclass(frozen=True, slots=True)
class VisibilityOutcome:
    """Result of a change of visibility: IDs of changed, unchanged and unshareable products, and the events."""

    changed: Sequence[str]
    unchanged: Sequence[str]
    unshareable: Sequence[str]
    events: Sequence[Event]


async def limit_by_size(tx: Tx, products: Sequence[str], max_bytes: int) -> Sequence[str]:
    """Return the first products whose documents have at most `max_bytes` together, but at least one."""
    sizes, total = await tx[PublishedCopies].measure(products), 0
    for count, id in enumerate(products):
        total += sizes.get(id, 0)
        if total > max_bytes and count:
            return products[:count]
    return products


async def change_visibility(tx: Tx, products: Collection[str], visibility: Visibility) -> VisibilityOutcome:
    """Change the visibility of products and update their copies. The caller must append the events.

    Products whose data must not leave the organisation are not listed. IDs that do not exist are ignored.

    Args:
        tx: The transaction, with `lock_for_writing`.
        products: The IDs of the products.
        visibility: The new visibility.
    """
    copies = tx[PublishedCopies]
    requested = frozenset(products)
    states = [
        state
        for state in await copies.lock_states(await copies.list_merge_groups(sorted(requested)))
        if state.id in requested
    ]
    unshareable = [state.id for state in states if visibility == Visibility.LISTED and not state.is_shareable]
    unchanged = [state.id for state in states if state.visibility == visibility]
    changed = [state for state in states if state.id not in {*unshareable, *unchanged}]
    ids = [state.id for state in changed]
    events: list[Event] = []
    if ids:
        await copies.set_visibility(ids, visibility)
        previous = {state.id: state.visibility for state in changed if state.merged_into is None}
        events = await refresh_copies(tx, ids, previous_visibilities=previous)
    return VisibilityOutcome(ids, [id for id in unchanged if id not in unshareable], unshareable, events)


async def refresh_listed(tx: Tx, products: Iterable[Product], events: Iterable[Event]) -> list[Event]:
    """Update the copies of those products that are listed; see `refresh_copies`."""
    listed = [product.id for product in products if product.visibility == Visibility.LISTED]
    return await refresh_copies(tx, listed, events)


async def refresh_copies(
    tx: Tx,
    products: Collection[str],
    events: Iterable[Event] = (),
    *,
    previous_visibilities: Mapping[str, Visibility] | None = None,
) -> list[Event]:
    """Update the copies of products, and of all products merged with them; return the events of their publication.

    Args:
        tx: The transaction, with `lock_for_writing` or locks of the products.
        products: The IDs of products whose rows and documents are up to date.
        events: The events of the changes, of which those that other organisations may read are marked.
        previous_visibilities: Visibilities of products before the transaction changed them.
    """
    if not products:
        return []
    copies, previous = tx[PublishedCopies], previous_visibilities or {}
    group = await copies.list_merge_groups(sorted(products))
    states = {state.id: state for state in await copies.lock_states(group)}
    mark_published(events, states)
    visible = [id for id, state in states.items() if state.should_have_copy]
    newly_visible = [id for id in visible if not states[id].has_copy]
    hidden = [
        id for id, state in states.items() if (state.has_copy or state.has_reference) and not state.should_have_copy
    ]
    # a product merged into a visible one needs no `product.withdrawn`: the event of the merge names the other product
    withdrawn = [id for id in hidden if states[id].has_copy and states[id].merged_into not in visible]
    changed = sorted({*newly_visible, *withdrawn, *previous})
    if changed:
        await copies.advance_versions(changed)
    if visible:
        await copies.write(visible)
    if hidden:
        await copies.remove(hidden, visible)
    created: list[Event] = []
    documents = await copies.get_documents(newly_visible) if newly_visible else {}
    for id in changed:
        if id in documents:
            created += list_publication_events(documents[id], states[id].source)
        else:
            created.append(_create_change_event(states[id], previous.get(id), is_withdrawal=id in withdrawn))
    return created


def _create_change_event(state: PublicationState, previous: Visibility | None, *, is_withdrawal: bool) -> Event:
    """Return the event of a product that left, or whose visibility changed without an effect on its copy."""
    fields = [] if is_withdrawal or previous is None else [FieldChange("visibility", previous, state.visibility)]
    return Event(
        "product.withdrawn" if is_withdrawal else "product.updated", state.id, state.version + 1, {"id": state.id},
        fields=fields, source=state.source, catalogue=state.catalogue, is_published=is_withdrawal,
    )  # fmt: skip
