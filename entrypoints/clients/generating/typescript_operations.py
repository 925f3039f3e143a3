"""Writes `operations.js` and `operations.d.ts`: a class for each group, a method for each operation."""

from collections.abc import Mapping
from typing import Final

from entrypoints.clients.generating.model import Group, Json, Method, QueryParameter, groups_of
from entrypoints.clients.generating.naming import camel, type_name
from entrypoints.clients.generating.typescript_types import TypeScriptTypes, comment

_NOTE: Final = "// The methods of Joinery, by group. Generated from the API's description; do not edit.\n\n"
_SCRIPT_HEAD: Final = (
    _NOTE + "import { FollowChanges, Group, listed, Listing, UploadFiles, WaitForRuns } from './runtime/index.js'\n"
)
_TYPES_HEAD: Final = _NOTE + (
    "import type { ExplainOptions, FollowChanges, Keyed, Listing, Matched, ReadOptions, UploadFiles, WaitForRuns, "
    "WriteOptions } from './runtime/index.js'\nimport type * as t from './types.js'\n"
)
_BASES: Final[Mapping[str, tuple[str, str]]] = {
    "changes": ("FollowChanges", "FollowChanges<t.TypedEvent, t.TypedEvent['type']>"),
    "sources": ("UploadFiles", "UploadFiles<t.Upload>"),
    "runs": ("WaitForRuns", "WaitForRuns<t.Run>"),
}
"""What groups have beside the description's operations: in the script, and in its types."""


def class_name(group: Group) -> str:
    """The class of a group; types of the API have the plain names."""
    return f"{type_name(group.name)}Methods"


def _script_method(method: Method) -> str:
    names = [camel(name) for name in method.ids]
    ids = f"[{', '.join(names)}]"
    if method.item is not None:
        parameters = ", ".join([*names, "query", "options"])
        body = f"return new Listing(this.core, '{method.path}', {ids}, {_query(method)}, options)"
        return f"  {camel(method.name)}({parameters}) {{\n    {body}\n  }}\n"
    arguments = [*(["query"] if method.query else []), *(["body"] if method.body is not None else [])]
    parameters = ", ".join([*names, *arguments, "options"])
    if _query(method) != "query":
        arguments[0] = f"query: {_query(method)}"
    arguments += [*(["keyed: true"] if method.keyed else []), "options"]
    body = f"return this.core.call('{method.verb}', '{method.path}', {ids}, {{ {', '.join(arguments)} }})"
    return f"  {camel(method.name)}({parameters}) {{\n    {body}\n  }}\n"


def _query(method: Method) -> str:
    """The query as it is given; parameters that take many become lists."""
    many = ", ".join(f"'{one.name}'" for one in method.query if one.many)
    return f"listed(query, [{many}])" if many else "query"


def script_operations(document: Json) -> str:
    """`operations.js`."""
    classes = []
    for group in groups_of(document):
        base = _BASES.get(group.name, ("Group", ""))[0]
        methods = "\n".join(_script_method(method) for method in group.methods)
        classes.append(f"export class {class_name(group)} extends {base} {{\n{methods}}}\n")
    return _SCRIPT_HEAD + "\n" + "\n".join(classes)


class MethodTypes:
    """The types of the methods of one description."""

    def __init__(self, document: Json) -> None:
        self._types = TypeScriptTypes(document, "t.")

    def group(self, group: Group) -> str:
        """The declaration of a group."""
        base = _BASES.get(group.name, ("", ""))[1]
        head = comment(group.description, "") + f"export declare class {class_name(group)}"
        constructor = "" if base else "  private constructor()\n"
        methods = "".join(self._method(method) for method in group.methods)
        return f"{head}{' extends ' + base if base else ''} {{\n{constructor}{methods}}}\n"

    def _method(self, method: Method) -> str:
        described = comment(_described(method), "  ")
        if method.item is not None:
            answer = f"Listing<{self._types.of(method.item)}>"
            return described + self._signature(method, "options?: ReadOptions", answer)
        answer = f"Promise<{self._types.of(method.answer) if method.answer is not None else 'void'}>"
        if not method.writes:
            return described + self._signature(method, "options?: ReadOptions", answer)
        more = " & Matched" if method.if_match else ""
        more += " & Keyed" if method.keyed else ""
        explained = self._signature(method, f"options: ExplainOptions{more}", "Promise<t.Preview>")
        mark = "" if method.if_match else "?"
        return described + explained + described + self._signature(method, f"options{mark}: WriteOptions{more}", answer)

    def _signature(self, method: Method, options: str, answer: str) -> str:
        parameters = [f"{camel(name)}: string" for name in method.ids]
        needed = options.startswith("options:")
        if method.query:
            parameters.append(self._query(method))
        if method.body is not None:
            kind = self._types.of(method.body)
            optional = f"body: {kind} | undefined" if needed else f"body?: {kind}"
            parameters.append(f"body: {kind}" if method.body_required else optional)
        return f"  {camel(method.name)}({', '.join([*parameters, options])}): {answer}\n"

    def _query(self, method: Method) -> str:
        needed = any(one.required for one in method.query)
        fields = "; ".join(map(self._field, method.query))
        return f"query{'' if needed else '?'}: {{ {fields} }}"

    def _field(self, parameter: QueryParameter) -> str:
        schema = parameter.schema
        kind = self._types.of(schema)
        if parameter.many:
            kind = f"ReadonlyArray<{self._types.of(schema['items'])}>"
        if schema.get("format") == "date-time":
            kind += " | Date"
        return f"{parameter.name}{'' if parameter.required else '?'}: {kind}"


def _described(method: Method) -> str:
    lines = [method.description]
    if method.item is not None:
        lines.append(
            "Iterate for every item; `pages()` gives page by page. `limit` is the size of a page (default 100)."
        )
    lines.append(f"{method.verb} {method.address}")
    lines += [f"`{one.name}`: {one.description}" for one in method.query if one.description and one.name != "limit"]
    return "\n\n".join(lines)


def types_of_operations(document: Json) -> str:
    """`operations.d.ts`."""
    types = MethodTypes(document)
    return _TYPES_HEAD + "\n" + "\n".join(types.group(group) for group in groups_of(document))
