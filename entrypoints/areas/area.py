"""One area of the service, as every process reads it: the API, its description, workers and the scheduler."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from domain.jobs.usecases.draining import Handler
from domain.jobs.usecases.ticks import Tick
from entrypoints.dependencies import Dependencies
from entrypoints.http.operation import Operation


@dataclass(frozen=True, slots=True)
class Area:
    """`name` is the slug that the ids of its operations start with; `service` makes its use cases, once a process.

    `across` makes them of an area that works through all others: of their services and the whole table.

    `jobs` are the handlers of its kinds of job, `ticks` what the leading scheduler does for it now and then. `webhooks` are the requests that it sends to others, as OpenAPI has them.
    """

    name: str
    title: str
    description: str
    service: Callable[[Dependencies], Any]
    operations: tuple[Operation, ...]
    jobs: Callable[[Dependencies], Mapping[str, Handler]] = lambda _: {}
    ticks: Callable[[Dependencies], Sequence[Tick]] = lambda _: ()
    across: Callable[[Mapping[str, Any], Sequence[Operation]], Any] | None = None
    webhooks: Mapping[str, Callable[[Callable[[Any, str], Any]], Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse operations of other areas."""
        if strange := [row.id for row in self.operations if row.area != self.name]:
            raise ValueError(f"{self.name}: {strange} are another area's")


def services_of(areas: Iterable[Area], dependencies: Dependencies) -> dict[str, Any]:
    """The use cases of every area, by its name."""
    listed = list(areas)
    services = {area.name: area.service(dependencies) for area in listed if area.across is None}
    operations = [row for area in listed for row in area.operations]
    across = {area.name: area.across(services, operations) for area in listed if area.across is not None}
    return services | across
