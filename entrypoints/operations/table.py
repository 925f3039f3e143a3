"""An operation made ready to serve: what can be computed once per row is computed here, not per request."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Final
from urllib.parse import unquote

from domain.kernel.closeness import LONGEST
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
    parameter_name: str = ""
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
NOTHING: Final = Match()


def _is_parameter(segment: str) -> bool:
    return segment.startswith("{")


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
            if _is_parameter(segment):
                names.append(segment[1:-1])
                node.parameter = node.parameter or _Node()
                node.parameter_name = node.parameter_name or segment
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
        """The known path that is most like an unknown one, as it is written in the table, with its methods; None when none is."""
        node, told, at, here = self._root, None, "", self._root
        for segment in [part for part in path.split("/") if part][:_DEEPEST]:
            found = _likely(here, segment)
            if found is None:
                break
            name, here = found
            at += f"/{name}"
            if here.routes:
                node, told = here, at
        if told is None:
            told, node = _first_below(here, at) if at.count("/") > 1 else (None, node)
        return (told, tuple(sorted(node.routes))) if told else None


_DEEPEST: Final = 12
"""Segments of an unknown path that are looked at."""


def _likely(node: _Node, segment: str) -> tuple[str, _Node] | None:
    """The continuation that a segment probably means, with its name in the table."""
    if segment in node.words:
        return segment, node.words[segment]
    if node.parameter is not None and "_" in segment and segment.partition("_")[0] in PREFIXES:
        return node.parameter_name, node.parameter
    close = get_close_matches(segment[:LONGEST].lower().replace("_", "-"), node.words, 1, 0.6)
    if close:
        return close[0], node.words[close[0]]
    return (node.parameter_name, node.parameter) if node.parameter is not None else None


def _first_below(node: _Node, at: str) -> tuple[str | None, _Node]:
    """The nearest path below a node that answers nothing itself."""
    while not node.routes:
        if node.parameter is not None:
            at, node = f"{at}/{node.parameter_name}", node.parameter
        elif node.words:
            name, node = next(iter(node.words.items()))
            at = f"{at}/{name}"
        else:
            return None, node
    return at, node


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
