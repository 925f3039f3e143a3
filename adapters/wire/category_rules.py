"""The JSON of a source's category rules (docs/conventions.md#category-rules)."""

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
"""Rules that one request sets or removes."""
_PATH = {"examples": [["Living Room", "Chairs"]]}


def _category(of: Callable[[SourceCategory], str | None], description: str) -> Any:
    """A category by id and path."""
    shown = record(
        None,
        {"id": id_of("ctg"), "path": array(text("Seating")) | {"examples": [["Seating", "Chairs"]]}},
        description=description,
    )

    def render(row: SourceCategory, _view: Any) -> dict[str, Any] | None:
        found = categories.everything().get(of(row) or "")
        return {"id": found.id, "path": list(found.path)} if found else None

    return optional(computed(shown, render))


SOURCE_CATEGORY = Resource[SourceCategory](
    "source_category",
    {
        "path": array(text("Living Room"), description="The source's own names, from the top down.") | _PATH,
        "products": integer(120, least=0, description="Products at the path or below it."),
        "rule": _category(lambda row: row.rule, "The path's own rule."),
        "inherited": _category(lambda row: row.inherited, "The nearest rule above, which counts where there is none."),
        "suggestion": _category(lambda row: row.suggestion, "What might be its rule, where that is plain enough."),
    },
)


@dataclass(frozen=True, slots=True)
class Listing:
    """The answer: its categories as JSON, how many were left out, and the run that files the products by the rules just set."""

    categories: bytes
    left_out: int
    run: Run | None = None


def listing(found: PathsAndRules) -> tuple[bytes, int]:
    """Render a source's categories: as JSON, and how many were left out."""
    listed = source_categories(found)
    view = cast("View", None)  # a path is the same for everybody
    return msgspec.json.encode([SOURCE_CATEGORY.render(one, view) for one in listed.categories]), listed.left_out


CATEGORY_RULES = Resource[Listing](
    "category_rules",
    {
        "categories": Field(
            array(SOURCE_CATEGORY.schema, description="Every path, in the order of the paths."),
            lambda row, _view: msgspec.Raw(row.categories),
            rendered=True,
        ),
        "left_out": integer(
            0, least=0, description="How many paths more there are than are listed: those of few products."
        ),
        "run": Field(
            RUN.schema | {"description": "Files the products by the rules just set."},
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
