"""An operation as a call of the Python and of the TypeScript client, named as the clients name it."""

import json
import re
from typing import Any, Final

from entrypoints.clients.description import camel, group_and_method
from entrypoints.operations.openapi import body_example
from entrypoints.operations.operation import Operation
from entrypoints.site.calls import ids_of, pretty

_WORDS: Final = {"true": "True", "false": "False", "null": "None"}
_WORD: Final = re.compile(r"(?<=: )(?:true|false|null)\b")
"""JSON's words as values, which Python writes otherwise."""
_VERSION: Final = 7
"""What an example names as the version that was read."""


def in_clients(operation: Operation) -> list[tuple[str, str]]:
    """The call as (language, code); none of a stream, which clients follow by the feed."""
    if operation.streams:
        return []
    return [("Python", _python(operation)), ("TypeScript", _typescript(operation))]


def _python(operation: Operation) -> str:
    group, method = group_and_method(operation.id)
    given = [json.dumps(id) for id in ids_of(operation).values()]
    if operation.body is not None:
        given.append(_WORD.sub(lambda found: _WORDS[found[0]], _literal(body_example(operation))))
    if operation.if_match:
        given.append(f"if_match={_VERSION}")
    call = f"client.{group}.{method}({_joined(given)})"
    head = "from joinery_client import Joinery\n\nclient = Joinery()\n"
    return head + (
        f"for item in {call}:\n    print(item)" if operation.paging in ("both", "forward") else f"print({call})"
    )


def _typescript(operation: Operation) -> str:
    group, method = group_and_method(operation.id)
    given = [json.dumps(id) for id in ids_of(operation).values()]
    if operation.body is not None:
        given.append(_literal(body_example(operation)))
    if operation.if_match:
        given.append(f"{{ ifMatch: {_VERSION} }}")
    call = f"client.{camel(group)}.{camel(method)}({_joined(given)})"
    head = 'import { Joinery } from "joinery-client";\n\nconst client = new Joinery();\n'
    if operation.paging in ("both", "forward"):
        return f"{head}for await (const item of {call}) console.log(item);"
    return f"{head}console.log(await {call});"


def _literal(value: Any) -> str:
    line = _json(value)
    return line if len(line) < 80 else pretty(value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _joined(given: list[str]) -> str:
    return ", ".join(given)
