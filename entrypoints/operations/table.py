"""Operation table and its routing by method and path."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from urllib.parse import unquote

from domain.kernel.ids import PREFIXES
from entrypoints.operations.operation import Area, Operation
from entrypoints.operations.query_string import QueryParser
from entrypoints.operations.validation import Validator


@dataclass(slots=True)
class Route:
    """Operation with the parser of its query string and the validator of its body."""

    operation: Operation
    query_parser: QueryParser = field(init=False)
    body_validator: Validator | None = field(init=False)
    is_read: bool = field(init=False)

    def __post_init__(self) -> None:
        """Compile the operation's schemas. Raises an error for an invalid schema."""
        self.query_parser = QueryParser(self.operation)
        self.body_validator = (
            Validator(self.operation.body.accepted_schema) if self.operation.body is not None else None
        )
        self.is_read = not self.operation.is_write


@dataclass(slots=True)
class _Node:
    """Node of the routing trie, which is reached after one path segment.

    Attributes:
        static_nodes: Next nodes by static path segment.
        parameter_node: Next node for any value of a path parameter.
        routes: Routes of the path that ends here by method, each with the names of its path parameters.
    """

    static_nodes: dict[str, "_Node"] = field(default_factory=dict)
    parameter_node: "_Node | None" = None
    routes: dict[str, tuple[Route, tuple[str, ...]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RouteMatch:
    """Result of routing a request by method and path.

    Attributes:
        route: The route; None if the path does not exist or does not support the method.
        ids: Values of the path parameters by name.
        allowed_methods: Methods that the path supports, if it exists but does not support the method.
    """

    route: Route | None = None
    ids: dict[str, str] = field(default_factory=dict)
    allowed_methods: tuple[str, ...] = ()


_MatchedNode = tuple[_Node, tuple[str, ...]]
NO_MATCH = RouteMatch()
MAX_SUGGESTION_PATH_LENGTH = 80
"""Maximum characters of an unknown path for which similar paths are searched."""


class OperationTable:
    """Operations of all areas in the order of the areas, with their routes.

    Raises ValueError if two operations have the same ID, or the same method and path.
    """

    def __init__(self, areas: Iterable[Area]) -> None:
        self.areas = tuple(area for area in areas if area.operations)
        self.operations: tuple[Operation, ...] = tuple(row for area in self.areas for row in area.operations)
        self._root = _Node()
        ids = [operation.id for operation in self.operations]
        if duplicates := {id_ for id_ in ids if ids.count(id_) > 1}:
            raise ValueError(f"Several operations have the same ID: {sorted(duplicates)}.")
        for operation in self.operations:
            self._add_route(operation)

    def _add_route(self, operation: Operation) -> None:
        node = self._root
        names = []
        for segment in operation.path.split("/")[1:]:
            if segment.startswith("{"):
                names.append(segment[1:-1])
                node.parameter_node = node.parameter_node or _Node()
                node = node.parameter_node
            else:
                node = node.static_nodes.setdefault(segment, _Node())
        if operation.method in node.routes:
            raise ValueError(f"Two operations have {operation.method} {operation.path}.")
        node.routes[operation.method] = (Route(operation), tuple(names))

    def __iter__(self) -> Iterator[Operation]:
        """Return an iterator over the operations in the order of their areas."""
        return iter(self.operations)

    def match_request(self, method: str, path: str) -> RouteMatch:
        """Return the route for the method and path of a request. The path may be percent-encoded.

        Static segments take precedence over path parameters. HEAD uses the route of GET.
        """
        segments = path.split("/")
        if "%" in path:
            segments = [unquote(segment) for segment in segments]
        best = NO_MATCH
        for node, values in _iter_matching_nodes(self._root, segments, 1, ()):
            entry = node.routes.get("GET" if method == "HEAD" else method)
            if entry is not None:
                route, names = entry
                return RouteMatch(route, dict(zip(names, values, strict=True)) if names else {})
            if node.routes and not best.allowed_methods:
                best = RouteMatch(allowed_methods=_list_allowed_methods(node))
        return best

    def find_similar_path(self, path: str) -> tuple[str, tuple[str, ...]] | None:
        """Return the path template that is most similar to an unknown path, and the methods of the template.

        Return None if no template is similar.
        """
        parts = path.strip("/")[: MAX_SUGGESTION_PATH_LENGTH + 1].split("/")
        template = "/" + "/".join(
            "{id}" if "_" in part and part.partition("_")[0] in PREFIXES else part for part in parts
        )
        if len(template) > MAX_SUGGESTION_PATH_LENGTH or len(parts) < 2:
            return None
        paths = {operation.path for operation in self.operations}
        longer_paths = sorted((path for path in paths if path.startswith(template)), key=len)
        closest = (
            [template]
            if template in paths
            else longer_paths or get_close_matches(template.lower().replace("_", "-"), paths, 1, 0.7)
        )
        if not closest:
            return None
        return closest[0], tuple(
            sorted(operation.method for operation in self.operations if operation.path == closest[0])
        )


def _list_allowed_methods(node: _Node) -> tuple[str, ...]:
    methods = set(node.routes) | {"OPTIONS"} | ({"HEAD"} if "GET" in node.routes else set())
    return tuple(sorted(methods))


def _iter_matching_nodes(
    node: _Node, segments: list[str], index: int, values: tuple[str, ...]
) -> Iterator[_MatchedNode]:
    """Yield every node that the path reaches, with the values of the path parameters. Static segments take precedence.

    Args:
        node: The node that the segments before `index` reach.
        segments: All segments of the path.
        index: Index of the next segment.
        values: Values of the path parameters before `index`.
    """
    while index < len(segments):
        segment = segments[index]
        index += 1
        static_node = node.static_nodes.get(segment)
        parameter_node = node.parameter_node if segment else None
        if static_node is not None and parameter_node is not None:
            yield from _iter_matching_nodes(static_node, segments, index, values)
        if parameter_node is not None:
            node, values = parameter_node, (*values, segment)
        elif static_node is not None:
            node = static_node
        else:
            return
    yield node, values
