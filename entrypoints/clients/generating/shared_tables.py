"""Writes the tables and error classes of the TypeScript package out of the Python package's, so that both hold the same."""

import inspect
import json
import re
from typing import Final

from entrypoints.clients.generating.naming import camel
from entrypoints.clients.generating.typescript_types import comment
from entrypoints.clients.python.runtime import errors, tables

_NOTE: Final = "// Generated from the Python package's {module}.py; do not edit.\n\n"


def error_classes() -> tuple[type[errors.JoineryError], ...]:
    """Every kind of error beside JoineryError itself, in the order in which they stand."""
    return tuple(
        found
        for found in vars(errors).values()
        if inspect.isclass(found) and issubclass(found, errors.JoineryError) and found is not errors.JoineryError
    )


def error_names() -> tuple[str, ...]:
    """All that the packages show of errors.py, by name."""
    return tuple(sorted(["JoineryError", *(kind.__name__ for kind in error_classes())]))


def script_tables() -> str:
    """`runtime/tables.js`."""
    values = {name: value for name, value in vars(tables).items() if name.isupper()}
    return _NOTE.format(module="tables") + "".join(
        f"export const {name} = {json.dumps(value, indent=2)}\n" for name, value in values.items()
    )


def script_errors() -> str:
    """`runtime/error_kinds.js`."""
    statuses = "".join(f"  {status}: {kind.__name__},\n" for status, kind in errors.BY_STATUS.items())
    return (
        _NOTE.format(module="errors")
        + "import { JoineryError } from './errors.js'\n\n"
        + "".join(map(_script_class, error_classes()))
        + f"\n/** The kind of error by its status. */\nexport const BY_STATUS = {{\n{statuses}}}\n"
    )


def types_of_errors() -> str:
    """`runtime/error_kinds.d.ts`."""
    return (
        _NOTE.format(module="errors")
        + "import { JoineryError } from './index.js'\n\n"
        + "".join(
            f"{_comment(kind)}export declare class {kind.__name__} extends JoineryError {{}}\n"
            for kind in error_classes()
        )
    )


def _script_class(kind: type[errors.JoineryError]) -> str:
    # a getter, since JoineryError writes its message before fields of its kinds are there
    hint = f"\n  get hint() {{\n    return {json.dumps(kind.hint)}\n  }}\n" if kind.hint else ""
    return f"{_comment(kind)}export class {kind.__name__} extends JoineryError {{{hint}}}\n"


def _comment(kind: type[errors.JoineryError]) -> str:
    """Its docstring, with names as JavaScript writes them."""
    return comment(re.sub(r"`([a-z_]+)`", lambda name: f"`{camel(name[1])}`", inspect.getdoc(kind) or ""), "")
