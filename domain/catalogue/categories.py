"""The categories of the taxonomy, with their paths and ancestors."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b

from domain.catalogue.taxonomy import TREE
from domain.kernel.ids import create_id_from_digest


@dataclass(frozen=True, slots=True)
class Category:
    """Category of the furniture taxonomy.

    `path` has the names from the top category to this one, `ancestors` the IDs of the categories above. `google` is the number
    of the equivalent Google product category, or None.
    """

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
            id=create_id_from_digest("ctg", blake2b(f"category {slug}".encode(), digest_size=16).digest()),
            slug=slug,
            name=name,
            path=(*(entry.name for entry in ancestors), name),
            ancestors=tuple(entry.id for entry in ancestors),
            google=int(google) if google else None,
        )
        ancestors.append(category)
        yield category


@cache
def category_by_id() -> dict[str, Category]:
    """Return every category by ID, in the order of the tree."""
    return {category.id: category for category in _parse_tree()}


def path_ids(id: str | None) -> tuple[str, ...]:
    """Return the IDs on the path to a category, from the top category to the category itself; empty for an unknown ID."""
    category = category_by_id().get(id) if id else None
    return (*category.ancestors, category.id) if category else ()


@cache
def list_subcategories(id: str) -> tuple[str, ...]:
    """Return the ID of a category and the IDs of all categories below it; the ID itself if it is unknown."""
    return (id, *(category.id for category in category_by_id().values() if id in category.ancestors))


@cache
def find_id_by_google_id(number: int) -> str | None:
    """Return the ID of the category that corresponds to a Google product category, or None."""
    return next((entry.id for entry in category_by_id().values() if entry.google == number), None)


@cache
def find_id_by_slug(slug: str) -> str | None:
    """Return the ID of the category with the slug, or None."""
    return next((entry.id for entry in category_by_id().values() if entry.slug == slug), None)
