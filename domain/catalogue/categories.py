"""The categories of the taxonomy with their paths and ancestors."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b

from domain.catalogue.taxonomy import TREE
from domain.kernel.ids import from_digest


@dataclass(frozen=True, slots=True)
class Category:
    """One category. `path` has the names from the top down to its own; `google` is the equivalent Google category."""

    id: str
    slug: str
    name: str
    path: tuple[str, ...]
    ancestors: tuple[str, ...]
    google: int | None

    @property
    def parent(self) -> str | None:
        """ID of the parent category, or None for a top category."""
        return self.ancestors[-1] if self.ancestors else None


def _parse_tree() -> Iterator[Category]:
    ancestors: list[Category] = []
    for line in TREE.splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        slug, name, google = (part.strip() for part in line.split("|"))
        del ancestors[depth:]
        category = Category(
            id=from_digest("ctg", blake2b(f"category {slug}".encode(), digest_size=16).digest()),
            slug=slug,
            name=name,
            path=(*(entry.name for entry in ancestors), name),
            ancestors=tuple(entry.id for entry in ancestors),
            google=int(google) if google else None,
        )
        ancestors.append(category)
        yield category


@cache
def everything() -> dict[str, Category]:
    """Return every category by ID, in the order of the tree."""
    return {category.id: category for category in _parse_tree()}


def above(id: str | None) -> tuple[str, ...]:
    """Return the IDs of a category and its ancestors, from the top; empty for None or an unknown ID."""
    category = everything().get(id) if id else None
    return (*category.ancestors, category.id) if category else ()


@cache
def by_google(number: int) -> str | None:
    """Return the ID of the category that corresponds to a Google product category, or None."""
    return next((entry.id for entry in everything().values() if entry.google == number), None)


@cache
def by_slug(slug: str) -> str | None:
    """Return the ID of the category with the slug, or None."""
    return next((entry.id for entry in everything().values() if entry.slug == slug), None)
