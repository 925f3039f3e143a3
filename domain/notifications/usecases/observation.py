"""Reading of sources for rules about late sources and problems."""

from collections.abc import Mapping
from dataclasses import dataclass

from domain.kernel.paging import list_all
from domain.notifications.ports import NotificationRuleStore
from domain.sources.model import SourceKind
from domain.sources.ports import SourceStore
from ports.unit_of_work import Tx

PULLED_KINDS = frozenset({SourceKind.URL, SourceKind.API})
"""Kinds of sources that are fetched by a schedule, and can therefore be late."""


@dataclass(frozen=True, slots=True)
class SourceObservation:
    """State of a tenant's sources at present.

    Attributes:
        names: Names by ID.
        late: Label of the lateness of each late source: `catalogue_late`, `catalogue_stale`, `stock_late` or `stock_stale`.
        problems: Number of problems of the newest successful import of each source.
    """

    names: Mapping[str, str]
    late: Mapping[str, str]
    problems: Mapping[str, int]


async def observe_sources(tx: Tx) -> SourceObservation:
    """Observe the tenant's sources. A source without a schedule, or one that does not run, is never late."""
    sources = await list_all(tx[SourceStore].page)
    late = dict[str, str]()
    for source in sources:
        for stream in ("catalogue", "stock"):
            freshness = source.compute_freshness(stream, tx.now)
            may_be_late = (
                source.is_runnable and source.kind in PULLED_KINDS and source.get_next_pull(stream) is not None
            )
            if may_be_late and freshness is not None and freshness["state"] != "fresh":
                late.setdefault(source.id, f"{stream}_{freshness['state']}")
    problems = dict(await tx[NotificationRuleStore].list_problem_counts(None))
    return SourceObservation({source.id: source.name for source in sources}, late, problems)
