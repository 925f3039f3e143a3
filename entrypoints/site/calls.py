"""Example calls of operations with curl and the Python and TypeScript clients, and rate limits as text."""

import json
import re
from collections.abc import Mapping
from typing import Any

from domain.kernel import schema
from entrypoints.clients.description import camel, group_and_method
from entrypoints.http.checks import TIERS
from entrypoints.operations.openapi import body_example
from entrypoints.operations.operation import Operation

_LINE = 90
"""Maximum characters of JSON on one line."""


_PYTHON_LITERALS = {"true": "True", "false": "False", "null": "None"}
_JSON_LITERAL = re.compile(r"(?<=: )(?:true|false|null)\b")
"""JSON literals as values, which differ in Python."""
_VERSION = 7
"""Version in examples."""


def pretty(value: Any) -> str:
    """Format JSON with indentation."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def ids_of(operation: Operation) -> dict[str, str]:
    """Return the example values of path parameters; the name itself if a parameter is not an ID."""
    ids = operation.ids
    return {
        name: str(schema.example(schema.id_of(ids[name]))) if name in ids else name
        for name in operation.path_parameters
    }


def _quoted_body(operation: Operation) -> str:
    """Return the example body for single quotes, on one line if it is short."""
    example = body_example(operation)
    line = json.dumps(example, ensure_ascii=False, default=str)
    return (line if len(line) <= _LINE else pretty(example)).replace("'", "'\\''")


def curl(operation: Operation, base_url: str) -> str:
    """Return the curl command; it reads the key from the environment."""
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
        lines += ['-H "Content-Type: application/json"', f"-d '{_quoted_body(operation)}'"]
    return " \\\n  ".join(lines)


def in_clients(operation: Operation) -> list[tuple[str, str]]:
    """Return the call as (language, code) pairs; empty for a stream, for which clients use the feed."""
    if operation.streams:
        return []
    return [("Python", _python(operation)), ("TypeScript", _typescript(operation))]


def _python(operation: Operation) -> str:
    group, method = group_and_method(operation.id)
    call = f"client.{group}.{method}({_arguments(operation, f'if_match={_VERSION}', _PYTHON_LITERALS)})"
    head = "from joinery_client import Joinery\n\nclient = Joinery()\n"
    return head + (
        f"for item in {call}:\n    print(item)" if operation.paging in ("both", "forward") else f"print({call})"
    )


def _typescript(operation: Operation) -> str:
    group, method = group_and_method(operation.id)
    call = f"client.{camel(group)}.{camel(method)}({_arguments(operation, f'{{ ifMatch: {_VERSION} }}', {})})"
    head = 'import { Joinery } from "joinery-client";\n\nconst client = new Joinery();\n'
    if operation.paging in ("both", "forward"):
        return f"{head}for await (const item of {call}) console.log(item);"
    return f"{head}console.log(await {call});"


def _arguments(operation: Operation, if_match: str, words: Mapping[str, str]) -> str:
    arguments = [json.dumps(id) for id in ids_of(operation).values()]
    if operation.body is not None:
        line = json.dumps(example := body_example(operation), ensure_ascii=False, default=str)
        literal = line if len(line) < 80 else pretty(example)
        arguments.append(_JSON_LITERAL.sub(lambda found: words.get(found[0], found[0]), literal))
    return ", ".join([*arguments, if_match] if operation.if_match else arguments)


def pace(per_second: float) -> str:
    """Format a rate, such as `100 a second`."""
    return f"{per_second:,.0f} a second" if per_second >= 1 else f"{per_second * 60:,.0f} a minute"


def in_words(rate: str) -> str:
    """Describe a rate class with its limits by plan tier."""
    first, *larger = (pace(rates[rate][0]).partition(" ") for rates in TIERS.values())
    return f"{rate}: {first[0]} requests {first[2]}, {' or '.join(number for number, _, _ in larger)} in larger plans"
