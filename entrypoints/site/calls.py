"""Example calls of operations with curl and the Python and TypeScript clients, and descriptions of rate limits."""

import json
import re
from collections.abc import Mapping
from typing import Any

from domain.kernel import schema
from entrypoints.clients.description import split_operation_id, to_camel_case
from entrypoints.http.checks import TIERS
from entrypoints.operations.openapi import build_body_example
from entrypoints.operations.operation import Operation

_MAX_LINE_CHARS = 90
"""Maximum number of characters of JSON on one line."""
_PYTHON_LITERALS = {"true": "True", "false": "False", "null": "None"}
_JSON_LITERAL = re.compile(r"(?<=: )(?:true|false|null)\b")
"""Values of JSON properties that are written differently in Python."""
_VERSION = 7
"""Version of an object in examples."""


def format_json(value: Any) -> str:
    """Format JSON with indentation."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def list_example_values(operation: Operation) -> dict[str, str]:
    """Return example values of an operation's path parameters by name."""
    return {
        name: str(schema.build_example(dict(operation.build_path_schema(name)))) for name in operation.path_parameters
    }


def _quote_body(operation: Operation) -> str:
    """Return the example body, escaped for single quotes in a shell, on one line if it is short."""
    example = build_body_example(operation)
    line = json.dumps(example, ensure_ascii=False, default=str)
    return (line if len(line) <= _MAX_LINE_CHARS else format_json(example)).replace("'", "'\\''")


def format_curl(operation: Operation, base_url: str) -> str:
    """Return a curl command that calls an operation, with the API key from the environment."""
    lines = [
        f'curl{" -N" if operation.is_stream else ""} "{base_url}{operation.path.format_map(list_example_values(operation))}"',
        '-H "Authorization: Bearer $JOINERY_KEY"',
    ]
    if operation.method != "GET":
        lines.insert(1, f"-X {operation.method}")
    if operation.requires_idempotency_key:
        lines.append('-H "Idempotency-Key: $(date +%s)-1"')
    if operation.requires_if_match:
        lines.append("""-H 'If-Match: "7-5d1ca8b77e0a3c1f2b44c9d0"'""")
    if operation.body is not None:
        lines += ['-H "Content-Type: application/json"', f"-d '{_quote_body(operation)}'"]
    return " \\\n  ".join(lines)


def format_client_examples(operation: Operation) -> list[tuple[str, str]]:
    """Return example calls of an operation with the clients, as pairs of language and code; none for a stream."""
    # Instead of streams, the clients use the change feed.
    if operation.is_stream:
        return []
    return [("Python", _format_python(operation)), ("TypeScript", _format_typescript(operation))]


def _format_python(operation: Operation) -> str:
    """Return a call of an operation with the Python client."""
    group, method = split_operation_id(operation.id)
    call = f"client.{group}.{method}({_format_arguments(operation, f'if_match={_VERSION}', _PYTHON_LITERALS)})"
    head = "from joinery_client import Joinery\n\nclient = Joinery()\n"
    return head + (
        f"for item in {call}:\n    print(item)" if operation.paging in ("both", "forward") else f"print({call})"
    )


def _format_typescript(operation: Operation) -> str:
    """Return a call of an operation with the TypeScript client."""
    group, method = split_operation_id(operation.id)
    call = f"client.{to_camel_case(group)}.{to_camel_case(method)}({_format_arguments(operation, f'{{ ifMatch: {_VERSION} }}', {})})"
    head = 'import { Joinery } from "joinery-client";\n\nconst client = new Joinery();\n'
    if operation.paging in ("both", "forward"):
        return f"{head}for await (const item of {call}) console.log(item);"
    return f"{head}console.log(await {call});"


def _format_arguments(operation: Operation, if_match: str, literals: Mapping[str, str]) -> str:
    """Return the arguments of a call of an operation as source code.

    Args:
        operation: The operation.
        if_match: The argument with the version of the object, used if the operation requires If-Match.
        literals: The literals of the language for `true`, `false` and `null`, as far as they differ from JSON.
    """
    arguments = [json.dumps(id) for id in list_example_values(operation).values()]
    if operation.body is not None:
        line = json.dumps(example := build_body_example(operation), ensure_ascii=False, default=str)
        literal = line if len(line) < 80 else format_json(example)
        arguments.append(_JSON_LITERAL.sub(lambda found: literals.get(found[0], found[0]), literal))
    return ", ".join([*arguments, if_match] if operation.requires_if_match else arguments)


def format_rate(per_second: float) -> str:
    """Format a rate of requests per second, such as `100 a second` or `30 a minute`."""
    return f"{per_second:,.0f} a second" if per_second >= 1 else f"{per_second * 60:,.0f} a minute"


def describe_rate_class(rate_class: str) -> str:
    """Describe the rate limits of a rate class, such as `read`, for each tier of plans, without the bursts."""
    first, *larger = (format_rate(rates[rate_class][0]).partition(" ") for rates in TIERS.values())
    return f"{rate_class}: {first[0]} requests {first[2]}, {' or '.join(number for number, _, _ in larger)} in larger plans"
