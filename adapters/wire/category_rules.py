"""JSON of a source's category rules (docs/conventions.md#category-rules)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import msgspec

from adapters.wire.resource import Body, Resource
from adapters.wire.runs import RUN
from domain.catalogue import categories
from domain.catalogue.category_rules import MOST_LEVELS, RuleChange, SourceCategory
from domain.kernel.bounds import ITEM_CHARS
from domain.kernel.resource import Field, View, computed, optional
from domain.kernel.schema import array, id_of, integer, nullable, record, strict_object, text
from domain.runs.model import Run
from domain.runs.usecases.category_rules import PathsAndRules, source_categories

MOST_CHANGES = 1_000
"""Maximum number of rules that one request sets or removes."""
_PATH = {"examples": [["Living Room", "Chairs"]]}


def _category(select: Callable[[SourceCategory], str | None], description: str) -> Any:
    """Return a property with the id and path of the selected category."""
    schema = record(
        None,
        {"id": id_of("ctg"), "path": array(text("Seating")) | {"examples": [["Seating", "Chairs"]]}},
        description=description,
    )

    def render(row: SourceCategory, _view: Any) -> dict[str, Any] | None:
        category = categories.everything().get(select(row) or "")
        return {"id": category.id, "path": list(category.path)} if category else None

    return optional(computed(schema, render))


SOURCE_CATEGORY = Resource[SourceCategory](
    "source_category",
    {
        "path": array(text("Living Room"), description="The category's names in the source, from the top level down.")
        | _PATH,
        "products": integer(120, least=0, description="Number of products at the path or below it."),
        "rule": _category(lambda row: row.rule, "The category that the path's own rule sets."),
        "inherited": _category(
            lambda row: row.inherited, "The category of the nearest rule above, which applies if the path has no rule."
        ),
        "suggestion": _category(
            lambda row: row.suggestion, "A suggested category for a rule, if one is likely enough."
        ),
    },
)


@dataclass(frozen=True, slots=True)
class Listing:
    """Response with the categories as JSON, the number of omitted ones, and the run that applies new rules to products."""

    categories: bytes
    left_out: int
    run: Run | None = None


def listing(found: PathsAndRules) -> tuple[bytes, int]:
    """Render a source's categories; return their JSON and the number of omitted ones."""
    listed = source_categories(found)
    view = cast("View", None)  # the rendering does not depend on the tenant
    rows = [SOURCE_CATEGORY.render(category, view) for category in listed.categories]
    return msgspec.json.encode(rows), listed.left_out


CATEGORY_RULES = Resource[Listing](
    "category_rules",
    {
        "categories": Field(
            array(SOURCE_CATEGORY.schema, description="The source's category paths in alphabetical order."),
            lambda row, _view: msgspec.Raw(row.categories),
            rendered=True,
        ),
        "left_out": integer(
            0, least=0, description="Number of paths that are not listed, which have the fewest products."
        ),
        "run": Field(
            RUN.schema | {"description": "The run that applies the new rules to the products."},
            lambda row, view: RUN.render(row.run, view) if row.run else None,
            optional=True,
            rendered=True,
        ),
    },
)


def _changes(body: Mapping[str, Any]) -> list[RuleChange]:
    return [RuleChange(tuple(rule["path"]), rule["category"]) for rule in body["rules"]]


CHANGES = Body(
    strict_object(
        {
            "rules": array(
                strict_object(
                    {
                        "path": array(text("Living Room", longest=ITEM_CHARS), least=1, most=MOST_LEVELS) | _PATH,
                        "category": nullable(id_of("ctg")) | {"description": "Null removes the path's rule."},
                    },
                    required=("path", "category"),
                ),
                least=1,
                most=MOST_CHANGES,
            )
        },
        required=("rules",),
    ),
    _changes,
)
