"""An operation as a call that can be pasted into a shell."""

import json
from typing import Any, Final

from domain.kernel import schema
from entrypoints.operations.openapi import body_example
from entrypoints.operations.operation import Operation

_LINE: Final = 90
"""Characters of JSON that fit on a line."""


def pretty(value: Any) -> str:
    """JSON for people."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def ids_of(operation: Operation) -> dict[str, str]:
    """What stands in the path, by name: an id as an example, the name itself for what is no id."""
    ids = operation.ids
    return {
        name: str(schema.example(schema.id_of(ids[name]))) if name in ids else name
        for name in operation.path_parameters
    }


def _body(operation: Operation) -> str:
    """The example as it stands between single quotes: on one line where it is short."""
    example = body_example(operation)
    line = json.dumps(example, ensure_ascii=False, default=str)
    return (line if len(line) <= _LINE else pretty(example)).replace("'", "'\\''")


def curl(operation: Operation, base_url: str) -> str:
    """The call; the key is read from the environment."""
    lines = [
        f'curl{" -N" if operation.streams else ""} "{base_url}{operation.path.format_map(ids_of(operation))}"',
        '-H "Authorization: Bearer $JOINERY_KEY"',
    ]
    if operation.method != "GET":
        lines.insert(1, f"-X {operation.method}")
    if operation.idempotent:
        lines.append('-H "Idempotency-Key: $(date +%s)-1"')
    if operation.if_match:
        lines.append("""-H 'If-Match: "7-5d1ca8b77e0a3c1f2b44c9d0"'""")
    if operation.body is not None:
        lines += ['-H "Content-Type: application/json"', f"-d '{_body(operation)}'"]
    return " \\\n  ".join(lines)
