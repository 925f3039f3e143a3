"""Scopes as sentences for people, those that permit changes first."""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

SENTENCES: Final[dict[str, str]] = tomllib.loads(files(__package__).joinpath("scopes.toml").read_text("utf-8"))


@dataclass(frozen=True, slots=True)
class Permission:
    """Scope with its sentence. `changes`: whether it permits more than reading."""

    scope: str
    sentence: str
    changes: bool


def permissions(scopes: Iterable[str]) -> list[Permission]:
    """Return the scopes as permissions, those that permit changes first."""
    permissions_ = [Permission(scope, SENTENCES[scope], scope.endswith(":write")) for scope in scopes]
    return sorted(permissions_, key=lambda permission: (not permission.changes, permission.scope))
