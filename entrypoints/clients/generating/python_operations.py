"""Writes `operations.py` and `async_operations.py`: a class for each group, a method for each operation."""

from collections.abc import Mapping
from typing import Final

from entrypoints.clients.generating.model import Group, Json, Method, QueryParameter, groups_of
from entrypoints.clients.generating.naming import type_name
from entrypoints.clients.generating.python_types import PythonTypes, docstring

_HEAD: Final = '''"""The methods of {client}, by group. Generated from the API's description; do not edit."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, overload

from . import types as t
from .runtime.core import listed
from .runtime.following import {a}FollowChanges
from .runtime.groups import {a}Group
from .runtime.paging import ListCall, {a}Listing
from .runtime.uploading import {a}UploadFiles
from .runtime.waiting import {a}WaitForRuns

'''
_BASES: Final[Mapping[str, str]] = {
    "changes": "FollowChanges[t.TypedEvent]",
    "sources": "UploadFiles[t.Upload]",
    "runs": "WaitForRuns[t.Run]",
}
"""What groups have beside the description's operations."""


class PythonMethods:
    """The methods of one client, which blocks or is awaited."""

    def __init__(self, document: Json, *, awaited: bool) -> None:
        self._types = PythonTypes(document, "t.")
        self._a, self._def, self._await = ("Async", "async def", "await ") if awaited else ("", "def", "")

    def group(self, group: Group) -> str:
        """The class of a group."""
        base = self._a + _BASES.get(group.name, "Group")
        head = f"class {self._a}{type_name(group.name)}({base}):\n" + docstring(group.description, "    ")
        return head + "".join("\n" + self.method(method) for method in group.methods)

    def method(self, method: Method) -> str:
        """One method; a write has another answer with `explain=True`."""
        if method.item is not None:
            return self._list(method)
        answer = self._types.of(method.answer) if method.answer is not None else "None"
        if not method.writes:
            return self._signature(method, "", answer) + self._body(method, answer)
        explained = self._signature(method, "explain: Literal[True]", "t.Preview", "...")
        usual = self._signature(method, "explain: Literal[False] = False, dry_run: bool = False", answer, "...")
        whole = self._signature(method, "explain: bool = False, dry_run: bool = False", "Any")
        return f"    @overload\n{explained}\n    @overload\n{usual}\n{whole}" + self._body(method)

    def _list(self, method: Method) -> str:
        item = self._types.of(method.item or {})
        head = f"    def {method.name}({self._parameters(method, '')}) -> {self._a}Listing[{item}]:\n"
        call = f'ListCall("{method.path}", {_ids(method)}, {_query(method)})'
        return head + _docstring(method) + f"        return {self._a}Listing(self._driver, self._core, {call})\n"

    def _signature(self, method: Method, further: str, answer: str, body: str = "") -> str:
        return f"    {self._def} {method.name}({self._parameters(method, further)}) -> {answer}:{' ' + body if body else ''}\n"

    def _parameters(self, method: Method, further: str) -> str:
        positional = ["self", *(f"{name}: str" for name in method.ids)]
        if method.body is not None:
            kind = self._types.of(method.body)
            positional.append(f"body: {kind}" if method.body_required else f"body: {kind} | None = None")
        named = sorted(map(self._query_parameter, method.query), key=lambda one: "=" in one)
        if method.if_match:
            named.insert(0, "if_match: int | str")
        if further:
            named.append(further)
        if method.keyed:
            named.append("idempotency_key: str | None = None")
        return ", ".join([*positional, *(["*", *named] if named else [])])

    def _query_parameter(self, parameter: QueryParameter) -> str:
        schema = parameter.schema
        kind = self._types.of(schema)
        if parameter.many:
            kind = f"Sequence[{self._types.of(schema['items'])}]"
        if schema.get("format") == "date-time":
            kind += " | datetime"
        return f"{parameter.name}: {kind}" if parameter.required else f"{parameter.name}: {kind} | None = None"

    def _body(self, method: Method, answer: str = "") -> str:
        arguments = [f'"{method.verb}"', f'"{method.path}"', _ids(method)]
        if method.query:
            arguments.append(f"query={_query(method)}")
        if method.body is not None:
            arguments.append("body=body")
        if method.keyed:
            arguments += ["keyed=True", "idempotency_key=idempotency_key"]
        if method.if_match:
            arguments.append("if_match=if_match")
        if method.writes:
            arguments += ["dry_run=dry_run", "explain=explain"]
        call = f"self._core.call({', '.join(arguments)})"
        run = f"{self._await}self._run({call})"
        typed = f"        made: {answer} = {run}\n        return made\n" if answer else f"        return {run}\n"
        return _docstring(method) + typed


def _docstring(method: Method) -> str:
    lines = [method.description]
    if method.item is not None:
        lines.append(
            "Iterate for every item; `.pages()` gives page by page. `limit` is the size of a page (default 100)."
        )
    if method.if_match:
        lines.append('`if_match` is the `version` that you read (or an ETag, or `"*"` for any).')
    noted = [f"`{one.name}`: {one.description}" for one in method.query if one.description and one.name != "limit"]
    lines += [f"{method.verb} {method.address}", *noted]
    return docstring("\n\n".join(lines), "        ")


def _ids(method: Method) -> str:
    return f"({', '.join(method.ids)},)" if method.ids else "()"


def _query(method: Method) -> str:
    return "{" + ", ".join(f'"{one.name}": {_argument(one)}' for one in method.query) + "}"


def _argument(parameter: QueryParameter) -> str:
    return f"listed({parameter.name})" if parameter.many else parameter.name


def python_operations(document: Json, *, awaited: bool) -> str:
    """The whole module."""
    methods = PythonMethods(document, awaited=awaited)
    head = _HEAD.format(client="AsyncJoinery" if awaited else "Joinery", a="Async" if awaited else "")
    return head + "\n\n".join(methods.group(group) for group in groups_of(document))
