"""JSON of a source's category rules (docs/conventions.md#category-rules)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import msgspec

from adapters.api_json.resource import Body, JsonResource
from adapters.api_json.runs import RUN
from domain.catalogue import categories
from domain.catalogue.category_rules import MAX_PATH_LEVELS, RuleChange, SourceCategory
from domain.kernel.bounds import MAX_ENTRY_CHARS
from domain.kernel.resource import Field, RenderContext, computed, optional
from domain.kernel.schema import array, id_schema, integer, nullable, response_object, strict_object, text
from domain.runs.model import Run
from domain.runs.usecases.category_rules import StoredCategories, list_source_paths

MAX_RULE_CHANGES = 1_000
"""Maximum number of category rules that one request sets or removes."""
_PATH = {"examples": [["Living Room", "Chairs"]]}


def _create_category_field(select: Callable[[SourceCategory], str | None], description: str) -> Any:
    """Return a field with the ID and path of the category whose ID `select` returns; omitted if `select` returns None."""
    schema = response_object(
        None,
        {"id": id_schema("ctg"), "path": array(text("Seating")) | {"examples": [["Seating", "Chairs"]]}},
        description=description,
    )

    def render(row: SourceCategory, _view: Any) -> dict[str, Any] | None:
        category = categories.category_by_id().get(select(row) or "")
        return {"id": category.id, "path": list(category.path)} if category else None

    return optional(computed(schema, render))


SOURCE_CATEGORY = JsonResource[SourceCategory](
    "source_category",
    {
        "path": array(text("Living Room"), description="The category's names in the source, from the top level down.")
        | _PATH,
        "products": integer(120, minimum=0, description="Number of products at the path or below it."),
        "rule": _create_category_field(lambda row: row.rule, "The category that the path's own rule sets."),
        "inherited": _create_category_field(
            lambda row: row.inherited,
            "The category that the nearest rule of a parent path sets. This category applies if the path has no rule.",
        ),
        "suggestion": _create_category_field(
            lambda row: row.suggestion, "A suggested category for a rule, if one is likely enough."
        ),
    },
)


@dataclass(frozen=True, slots=True)
class CategoryRulesReply:
    """Categories and category rules of a source.

    Attributes:
        categories: JSON of the categories in the list.
        left_out: Number of categories that are omitted from the list.
        run: Run that applies new rules to the products; None if no rules changed.
    """

    categories: bytes
    left_out: int
    run: Run | None = None


def render_categories(stored_categories: StoredCategories) -> tuple[bytes, int]:
    """Render a source's categories with their rules; return the JSON, and the number of categories not listed."""
    listed = list_source_paths(stored_categories)
    view = cast("RenderContext", None)  # the rendering does not depend on the tenant
    rows = [SOURCE_CATEGORY.render(category, view) for category in listed.categories]
    return msgspec.json.encode(rows), listed.omitted_count


CATEGORY_RULES = JsonResource[CategoryRulesReply](
    "category_rules",
    {
        "categories": Field(
            array(SOURCE_CATEGORY.schema, description="The source's category paths in alphabetical order."),
            lambda row, _view: msgspec.Raw(row.categories),
            rendered=True,
        ),
        "left_out": integer(
            0, minimum=0, description="Number of omitted paths. The paths with the fewest products are omitted first."
        ),
        "run": Field(
            RUN.schema | {"description": "The run that applies the new rules to the products."},
            lambda row, view: RUN.render(row.run, view) if row.run else None,
            optional=True,
            rendered=True,
        ),
    },
)


def _decode_changes(body: Mapping[str, Any]) -> list[RuleChange]:
    return [RuleChange(tuple(rule["path"]), rule["category"]) for rule in body["rules"]]


RULE_CHANGES = Body(
    strict_object(
        {
            "rules": array(
                strict_object(
                    {
                        "path": array(
                            text("Living Room", max_length=MAX_ENTRY_CHARS), min_items=1, max_items=MAX_PATH_LEVELS
                        )
                        | _PATH,
                        "category": nullable(id_schema("ctg")) | {"description": "Null removes the path's rule."},
                    },
                    required=("path", "category"),
                ),
                min_items=1,
                max_items=MAX_RULE_CHANGES,
            )
        },
        required=("rules",),
    ),
    _decode_changes,
)
