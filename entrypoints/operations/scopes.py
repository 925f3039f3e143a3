"""Scopes of credentials with sentences that explain them to people."""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

SENTENCE_BY_SCOPE: Final[dict[str, str]] = tomllib.loads(files(__package__).joinpath("scopes.toml").read_text("utf-8"))


@dataclass(frozen=True, slots=True)
class Permission:
    """Scope of a credential with an explanation for people.

    Attributes:
        scope: The scope, such as `sources:write`.
        sentence: What the scope permits.
        permits_changes: Whether the scope permits changes, not only reading.
    """

    scope: str
    sentence: str
    permits_changes: bool


def describe_scopes(scopes: Iterable[str]) -> list[Permission]:
    """Return the scopes with their sentences, those that permit changes first."""
    permissions = [Permission(scope, SENTENCE_BY_SCOPE[scope], scope.endswith(":write")) for scope in scopes]
    return sorted(permissions, key=lambda permission: (not permission.permits_changes, permission.scope))
