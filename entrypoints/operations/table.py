"""An operation made ready to serve: what can be computed once per row is computed here, not per request."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from urllib.parse import unquote

from domain.kernel.ids import PREFIXES
from entrypoints.operations.operation import Area, Operation
from entrypoints.operations.query_string import QueryReader
from entrypoints.operations.validation import Validator


@dataclass(slots=True)
class Route:
    """One operation and what reads its requests."""

    operation: Operation
    query: QueryReader = field(init=False)
    body: Validator | None = field(init=False)
    reads: bool = field(init=False)

    def __post_init__(self) -> None:
        """Compile the schemas; a wrong one is refused when the table is made."""
        self.query = QueryReader(self.operation)
        self.body = Validator(self.operation.body.schema) if self.operation.body is not None else None
        self.reads = not self.operation.writes


@dataclass(slots=True)
class _Node:
    """One segment of the trie: static continuations by word, then one parameter."""

    words: dict[str, "_Node"] = field(default_factory=dict)
    parameter: "_Node | None" = None
    routes: dict[str, tuple[Route, tuple[str, ...]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Match:
    """What a method and a path lead to: a route with the texts of its path parameters, or the methods allowed there.

    Neither means that there is nothing at the path.
    """

    route: Route | None = None
    ids: dict[str, str] = field(default_factory=dict)
    allowed: tuple[str, ...] = ()


_End = tuple[_Node, tuple[str, ...]]
NOTHING = Match()
LONGEST_PATH = 80
"""Characters of an unknown path that is compared with the known ones."""


class Table:
    """The areas' rows, in their order, and their routes.

    Raises ValueError for two rows of one id, or of one method and path.
    """

    def __init__(self, areas: Iterable[Area]) -> None:
        self.areas = tuple(areas)
        self.operations: tuple[Operation, ...] = tuple(row for area in self.areas for row in area.operations)
        self._root = _Node()
        ids = [operation.id for operation in self.operations]
        if doubled := {id_ for id_ in ids if ids.count(id_) > 1}:
            raise ValueError(f"Operations share the ids {sorted(doubled)}.")
        for operation in self.operations:
            self._plant(operation)

    def _plant(self, operation: Operation) -> None:
        node = self._root
        names = []
        for segment in operation.path.split("/")[1:]:
            if segment.startswith("{"):
                names.append(segment[1:-1])
                node.parameter = node.parameter or _Node()
                node = node.parameter
            else:
                node = node.words.setdefault(segment, _Node())
        if operation.method in node.routes:
            raise ValueError(f"Two operations answer {operation.method} {operation.path}.")
        node.routes[operation.method] = (Route(operation), tuple(names))

    def __iter__(self) -> Iterator[Operation]:
        """The operations in the order of their areas."""
        return iter(self.operations)

    def find(self, method: str, path: str) -> Match:
        """The route of a path as sent; a static segment wins over a parameter, HEAD is answered like GET."""
        segments = path.split("/")
        if "%" in path:
            segments = [unquote(segment) for segment in segments]
        best = NOTHING
        for node, values in _ends(self._root, segments, 1, ()):
            found = node.routes.get("GET" if method == "HEAD" else method)
            if found is not None:
                route, names = found
                return Match(route, dict(zip(names, values, strict=True)) if names else {})
            if node.routes and not best.allowed:
                best = Match(allowed=_allowed(node))
        return best

    def nearest(self, path: str) -> tuple[str, tuple[str, ...]] | None:
        """Return the known path that is most like an unknown one, as the table has it, with its methods; None when none is."""
        parts = path.strip("/")[: LONGEST_PATH + 1].split("/")
        meant = "/" + "/".join("{id}" if "_" in part and part.partition("_")[0] in PREFIXES else part for part in parts)
        if len(meant) > LONGEST_PATH or len(parts) < 2:
            return None
        known = {operation.path for operation in self.operations}
        longer = sorted((path for path in known if path.startswith(meant)), key=len)
        close = (
            [meant] if meant in known else longer or get_close_matches(meant.lower().replace("_", "-"), known, 1, 0.7)
        )
        if not close:
            return None
        return close[0], tuple(sorted(operation.method for operation in self.operations if operation.path == close[0]))


def _allowed(node: _Node) -> tuple[str, ...]:
    methods = set(node.routes) | {"OPTIONS"} | ({"HEAD"} if "GET" in node.routes else set())
    return tuple(sorted(methods))


def _ends(node: _Node, segments: list[str], at: int, values: tuple[str, ...]) -> Iterator[_End]:
    """Every end that the segments lead to, the most static first."""
    while at < len(segments):
        segment = segments[at]
        at += 1
        word, parameter = node.words.get(segment), node.parameter if segment else None
        if word is not None and parameter is not None:
            yield from _ends(word, segments, at, values)
        if parameter is not None:
            node, values = parameter, (*values, segment)
        elif word is not None:
            node = word
        else:
            return
    yield node, values
