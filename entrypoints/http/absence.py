"""What a 404 says: whether the path is unknown, the id is of the wrong kind, or nothing of the caller's has it.

A text depends on the path, the kind of id and the caller's own mode only: whether somebody else, or the other mode, has
such a thing is never told (docs/conventions.md#order-of-checks).
"""

from collections.abc import Mapping
from typing import Final

from domain.kernel.errors import NotFound
from domain.kernel.ids import NOUNS, is_id, prefix_in
from entrypoints.http.operation import Operation
from entrypoints.http.pattern_words import id_words
from entrypoints.http.request_state import RequestState
from entrypoints.http.table import Table

LONGEST: Final = 200
"""Characters of a path parameter that is no id."""
_ALL: Final = "/docs and /openapi.json have every path."
MODES: Final = {
    True: "Your credential works on live data here and sees no test data: for something made in test mode use a test key.",
    False: "Your credential works on test data here and sees no live data: for something made in live mode use a live key.",
}


def is_word(text: str) -> bool:
    """Whether a path parameter that is no id may be looked up."""
    return len(text) <= LONGEST and text.isprintable()


class Absence:
    """Words every 404 under /v1."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._places = _places(table)

    def worded(self, state: RequestState) -> NotFound:
        """The refusal of a request that found nothing."""
        route = state.match.route
        if route is None:
            return NotFound(self.of_path(state.request.path))
        operation, ids = route.operation, state.match.ids
        for name, text in ids.items():
            prefix = operation.ids.get(name)
            if prefix is not None and not is_id(prefix, text):
                return NotFound(self._wrong_kind(prefix, text))
        return NotFound(f"{_nothing(operation, ids)} {MODES[state.caller.tenant.livemode]}")

    def of_path(self, path: str) -> str:
        """What to say of a path that nobody serves."""
        near = self._table.nearest(path)
        if near is None:
            return f"There is no such path. {_ALL}"
        return f"There is no such path. The nearest is {', '.join(near[1])} {near[0]}. {_ALL}"

    def _wrong_kind(self, wanted: str, text: str) -> str:
        prefix = text.partition("_")[0]
        said = f"This address takes {id_words(wanted)}"
        if prefix == wanted or prefix not in NOUNS:
            return f"{said}; what stands there is not one. Check that the id was copied whole."
        place = self._places.get(prefix)
        where = f" Send it to {place}" if place else ""
        return f"{said}; what stands there starts with {prefix}_, as does the id of {NOUNS[prefix]}.{where}"


def _nothing(operation: Operation, ids: Mapping[str, str]) -> str:
    kinds = [NOUNS[operation.ids[name]] for name in ids if name in operation.ids]
    if not kinds:
        return "There is nothing here that you can see."
    if len(kinds) == 1:
        return f"There is no {_bare(kinds[0])} with this id that you can see."
    return f"There is no {_bare(kinds[0])} with this id that you can see, or it has no {_bare(kinds[-1])} with that id."


def _bare(noun: str) -> str:
    return noun.partition(" ")[2]


def _places(table: Table) -> dict[str, str]:
    """For each kind of id, an operation that takes it: in the path, else as a query parameter."""
    places: dict[str, str] = {}
    for operation in sorted(table, key=lambda one: (one.method != "GET", len(one.path))):
        for prefix in list(operation.ids.values())[-1:]:
            places.setdefault(prefix, f"{operation.method} {operation.path}")
    for operation in table:
        for name, schema in operation.query.items():
            kind = prefix_in(str(schema.get("items", schema).get("pattern", "")))
            if kind is not None:
                places.setdefault(kind, f"{operation.method} {operation.path}?{name}={kind}_…")
    return places
