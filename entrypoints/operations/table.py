"""Operation table with its routes: computes once per row what requests need."""

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
    """One operation with its query reader and body validator."""

    operation: Operation
    query: QueryReader = field(init=False)
    body: Validator | None = field(init=False)
    reads: bool = field(init=False)

    def __post_init__(self) -> None:
        """Compile the schemas; an invalid one raises."""
        self.query = QueryReader(self.operation)
        self.body = Validator(self.operation.body.schema) if self.operation.body is not None else None
        self.reads = not self.operation.writes


@dataclass(slots=True)
class _Node:
    """One segment of the trie: static continuations by word, and one parameter."""

    words: dict[str, "_Node"] = field(default_factory=dict)
    parameter: "_Node | None" = None
    routes: dict[str, tuple[Route, tuple[str, ...]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Match:
    """Result of routing: a route with the values of its path parameters, or the methods that the path supports.

    Neither means that the path does not exist.
    """

    route: Route | None = None
    ids: dict[str, str] = field(default_factory=dict)
    allowed: tuple[str, ...] = ()


_End = tuple[_Node, tuple[str, ...]]
NOTHING = Match()
LONGEST_PATH = 80
"""Maximum characters of an unknown path that is compared with the existing ones."""


class Table:
    """Operations of all areas in their order, with their routes.

    Raises ValueError if two rows share an ID, or a method and path.
    """

    def __init__(self, areas: Iterable[Area]) -> None:
        self.areas = tuple(areas)
        self.operations: tuple[Operation, ...] = tuple(row for area in self.areas for row in area.operations)
        self._root = _Node()
        ids = [operation.id for operation in self.operations]
        if duplicates := {id_ for id_ in ids if ids.count(id_) > 1}:
            raise ValueError(f"Operations share the ids {sorted(duplicates)}.")
        for operation in self.operations:
            self._add_route(operation)

    def _add_route(self, operation: Operation) -> None:
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
        """Iterate over the operations in the order of their areas."""
        return iter(self.operations)

    def find(self, method: str, path: str) -> Match:
        """Return the match of a path as sent; a static segment takes precedence over a parameter, HEAD uses GET."""
        segments = path.split("/")
        if "%" in path:
            segments = [unquote(segment) for segment in segments]
        best = NOTHING
        for node, values in _matching_nodes(self._root, segments, 1, ()):
            entry = node.routes.get("GET" if method == "HEAD" else method)
            if entry is not None:
                route, names = entry
                return Match(route, dict(zip(names, values, strict=True)) if names else {})
            if node.routes and not best.allowed:
                best = Match(allowed=_allowed_methods(node))
        return best

    def nearest(self, path: str) -> tuple[str, tuple[str, ...]] | None:
        """Return the path template most similar to an unknown path, with its methods; None if none is similar."""
        parts = path.strip("/")[: LONGEST_PATH + 1].split("/")
        template = "/" + "/".join(
            "{id}" if "_" in part and part.partition("_")[0] in PREFIXES else part for part in parts
        )
        if len(template) > LONGEST_PATH or len(parts) < 2:
            return None
        paths = {operation.path for operation in self.operations}
        longer = sorted((path for path in paths if path.startswith(template)), key=len)
        closest = (
            [template]
            if template in paths
            else longer or get_close_matches(template.lower().replace("_", "-"), paths, 1, 0.7)
        )
        if not closest:
            return None
        return closest[0], tuple(
            sorted(operation.method for operation in self.operations if operation.path == closest[0])
        )


def _allowed_methods(node: _Node) -> tuple[str, ...]:
    methods = set(node.routes) | {"OPTIONS"} | ({"HEAD"} if "GET" in node.routes else set())
    return tuple(sorted(methods))


def _matching_nodes(node: _Node, segments: list[str], at: int, values: tuple[str, ...]) -> Iterator[_End]:
    """Yield every node that the segments lead to, the most static first."""
    while at < len(segments):
        segment = segments[at]
        at += 1
        word, parameter = node.words.get(segment), node.parameter if segment else None
        if word is not None and parameter is not None:
            yield from _matching_nodes(word, segments, at, values)
        if parameter is not None:
            node, values = parameter, (*values, segment)
        elif word is not None:
            node = word
        else:
            return
    yield node, values
