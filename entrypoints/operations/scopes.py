"""What an app may do, in plain words: a sentence for each scope, those that change something first."""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

SENTENCES: Final[dict[str, str]] = tomllib.loads(files(__package__).joinpath("scopes.toml").read_text("utf-8"))


@dataclass(frozen=True, slots=True)
class Permission:
    """A scope as a person reads it. `changes`: with it, an app may do more than look."""

    scope: str
    sentence: str
    changes: bool


def permissions(scopes: Iterable[str]) -> list[Permission]:
    """The scopes as sentences."""
    found = [Permission(scope, SENTENCES[scope], scope.endswith(":write")) for scope in scopes]
    return sorted(found, key=lambda one: (not one.changes, one.scope))
