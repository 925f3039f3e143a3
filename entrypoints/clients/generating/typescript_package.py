"""Every file of the TypeScript package, by its path in the package."""

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Final

from entrypoints.clients.generating.model import Json, groups_of, known_types
from entrypoints.clients.generating.naming import camel
from entrypoints.clients.generating.shared_tables import error_names, script_errors, script_tables, types_of_errors
from entrypoints.clients.generating.typescript_operations import class_name, script_operations, types_of_operations
from entrypoints.clients.generating.typescript_types import typescript_types
from entrypoints.clients.version import VERSION

_SCRIPT: Final = """// The client of the Joinery API. Generated from its description; do not edit.

import * as operations from './operations.js'
import {{ Core }} from './runtime/index.js'

export {{ CursorFile, Follower, Listing, verifyWebhook }} from './runtime/index.js'
export {{ {errors} }} from './runtime/index.js'

export const API_VERSION = '{version}'

const KNOWN_TYPES = new Set([
{types}])

export const isTyped = (event) => KNOWN_TYPES.has(event.type)

export class Joinery {{
  constructor(settings = {{}}) {{
    const core = new Core(settings, {{ version: API_VERSION, agent: 'joinery-client-typescript/{package}' }})
{mounted}  }}
}}
"""
_TYPES: Final = """// The client of the Joinery API. Generated from its description; do not edit.

import type * as operations from './operations.js'
import type {{ ClientSettings }} from './runtime/index.js'
import type {{ Event, TypedEvent }} from './types.js'

export type * from './types.js'
export type {{ ClientSettings, CursorStore, ExplainOptions, FeedPage, FollowSettings, Keyed, Matched, Page, ReadOptions,
  UploadSettings, WriteOptions }} from './runtime/index.js'
export {{ CursorFile, Follower, Listing }} from './runtime/index.js'
export {{ {errors} }} from './runtime/index.js'

/** The dated version of the API that these types are those of. */
export declare const API_VERSION: '{version}'

/** Whether the event's type is one that this package knows. Newer types come without a new version of the API: ignore them. */
export declare function isTyped(event: Event | TypedEvent): event is TypedEvent

/**
 * The event of a webhook that one of the secrets has signed (Standard Webhooks 1.0.0).
 *
 * `body` is what came, before any parsing; while a secret is being rotated give both. Throws WebhookVerificationError when
 * a header is missing, the time is more than `tolerance` seconds (300) off, or no signature fits; TypeError when a secret
 * is not valid. A type may be newer than this package: ignore what you do not know.
 */
export declare function verifyWebhook(
  body: string | Uint8Array | ArrayBuffer,
  headers: {{ get(name: string): string | null }} | Record<string, string | string[] | undefined>,
  secret: string | readonly string[],
  tolerance?: number,
): Promise<TypedEvent>

/** The API, with one property for each area. */
export declare class Joinery {{
  constructor(settings?: ClientSettings)
{mounted}}}
"""


def _errors() -> str:
    """The errors of both packages, and the one that in Python is the language's own."""
    return ", ".join(sorted([*error_names(), "WaitTimeout"]))


def _index(document: Json) -> str:
    groups = groups_of(document)
    mounted = "".join(f"    this.{camel(group.name)} = new operations.{class_name(group)}(core)\n" for group in groups)
    types = "".join(f"  '{name}',\n" for name in known_types(document))
    version = document["info"]["version"]
    return _SCRIPT.format(errors=_errors(), version=version, types=types, package=VERSION, mounted=mounted)


def _index_types(document: Json) -> str:
    groups = groups_of(document)
    mounted = "".join(f"  readonly {camel(group.name)}: operations.{class_name(group)}\n" for group in groups)
    return _TYPES.format(errors=_errors(), version=document["info"]["version"], mounted=mounted)


def _manifest() -> str:
    manifest = {
        "name": "joinery-client",
        "version": VERSION,
        "description": "The client of the Joinery API, for Node.js and browsers.",
        "license": "Apache-2.0",
        "type": "module",
        "main": "./index.js",
        "types": "./index.d.ts",
        "exports": {".": {"types": "./index.d.ts", "default": "./index.js"}},
        "engines": {"node": ">=18"},
        "sideEffects": False,
    }
    return json.dumps(manifest, indent=2) + "\n"


def typescript_package(document: Json) -> Mapping[str, str]:
    """The generated files, and those written by hand."""
    own = files("entrypoints.clients.typescript")
    made = {
        "README.md": own.joinpath("README.md").read_text("utf-8"),
        "index.d.ts": _index_types(document),
        "index.js": _index(document),
        "operations.d.ts": types_of_operations(document),
        "operations.js": script_operations(document),
        "package.json": _manifest(),
        "runtime/error_kinds.d.ts": types_of_errors(),
        "runtime/error_kinds.js": script_errors(),
        "runtime/tables.js": script_tables(),
        "types.d.ts": typescript_types(document),
    }
    for file in own.joinpath("runtime").iterdir():
        if file.name.endswith((".js", ".ts")):
            made[f"runtime/{file.name}"] = file.read_text("utf-8")
    return dict(sorted(made.items()))
