"""Pages of column mappings: the review of columns with samples, and a preview of each choice."""

from collections.abc import Mapping, Sequence
from typing import Any

from domain.catalogue.model import Stream
from domain.ingestion.model import Column
from domain.kernel.errors import DomainError, NotFound
from domain.mappings.column_preview import SampleResult, preview_column
from domain.mappings.confirmation import FIELD_NAMES
from domain.mappings.model import SourceMapping
from domain.mappings.model_requests import SELECTABLE_FIELDS
from domain.mappings.ports import MappingStore
from domain.runs.sheets import create_feed_settings
from domain.sources.model import Source
from domain.sources.ports import SourceStore
from entrypoints.console.context import PageContext, Pages
from entrypoints.console.pages.sources import READ_SCOPE, WRITE_SCOPE
from entrypoints.console.rendering import ListPortion
from entrypoints.console.request import FormData
from entrypoints.console.translation import N_, gettext
from entrypoints.http.exchange import Response

COLUMNS_PER_FORM = 20
"""Maximum number of columns that a form shows; unsaved choices for other columns are hidden fields."""

pages = Pages("/console", section=N_("Sources"), scope=READ_SCOPE)


def _read_choices(mapping: Mapping[str, Any], form: FormData) -> list[tuple[Any, str, str, Any]]:
    """Return for each column a tuple: stored mapping, field and settings as in the form, and the edit for the API.

    The stored mapping is None for an unmapped column; the edit is empty if the form does not change the column.
    """
    column_by_position = {column["position"]: column for column in mapping["columns"]}
    choices: list[tuple[Any, str, str, Any]] = []
    for position in range(len(mapping["headers"])):
        current_column, edit = column_by_position.get(position), dict[str, Any]()
        current_choice = (
            (current_column["field"], _format_settings(current_column["settings"])) if current_column else ("", "")
        )
        field, settings = _read_choice(form, position, current_choice)
        if f"field.{position}" in form and (field, settings) != current_choice:
            edit = {"position": position, "field": field or None}
            if field and settings != current_choice[1]:
                edit["settings"] = _parse_settings(settings)
        choices.append((current_column, field, settings, edit))
    return choices


def _read_choice(form: FormData, position: int, current: tuple[str, str] = ("", "")) -> list[str]:
    """Return the field and the settings of a column as in the form; if the form lacks them, those in `current`."""
    names = (f"field.{position}", f"settings.{position}")
    return [
        form.get(name) if name in form else current_value for name, current_value in zip(names, current, strict=True)
    ]


def _format_settings(settings: Mapping[str, Any]) -> str:
    """Format a column's settings as `unit=cm; location=EAST`."""
    return "; ".join(f"{name}={value}" for name, value in settings.items() if name != "unit_by")


def _parse_settings(text: str) -> dict[str, str]:
    """Parse a column's settings, such as `unit=cm; location=EAST`."""
    pairs = (part.partition("=") for part in text.replace("\n", ";").split(";"))
    return {name.strip(): value.strip() for name, _, value in pairs if name.strip()}


async def _find_mapping(page: PageContext) -> tuple[SourceMapping, Any]:
    """Return the column mapping in the page's path, and the settings for reading the values of its stream.

    Raises NotFound if the mapping or its source does not exist.
    """
    async with page.open_read_transaction() as tx:
        mapping = await tx[MappingStore].get(page.path_parameters["id"])
        source: Source | None = await tx[SourceStore].get(mapping.source) if mapping else None
    if mapping is None or source is None:
        raise NotFound
    return mapping, create_feed_settings(source, Stream(mapping.stream))


def _preview_samples(
    mapping: SourceMapping, feed_settings: Any, position: int, field: str, settings: str
) -> Sequence[SampleResult]:
    """Return the results of reading a column's samples as values of a field.

    The results are empty if the field or a setting is invalid.

    Args:
        mapping: The column mapping with the samples.
        feed_settings: The settings for reading the values of the stream.
        position: The position of the column.
        field: The name of the field.
        settings: The settings of the column, such as `unit=cm; location=EAST`.
    """
    try:
        return preview_column(
            mapping, Column(position, mapping.headers[position], field, _parse_settings(settings)), feed_settings
        )
    except DomainError:
        return ()


@pages.register_get("/mappings/<id>")
async def show_mapping(page: PageContext) -> Response:
    """Show a column mapping for review, including unconfirmed choices from the submitted form."""
    mapping = await page.api.get(f"/v1/mappings/{page.path_parameters['id']}")
    stored, feed_settings = await _find_mapping(page)
    values = page.form if page.is_post else page.query
    positions, column = range(len(mapping["headers"])), values.get_number("column")
    is_single = column is not None and column in positions
    start = column if is_single else values.get_number("to" if "to" in values else "from")
    portion = ListPortion.from_items(positions, start, 1 if is_single else COLUMNS_PER_FORM)
    choices = _read_choices(mapping, page.form)
    reasons = {one["position"]: one["reason"] for one in mapping["unmapped"]}
    rows = []
    for position in portion.items:
        mapped_column, field, settings, _ = choices[position]
        cells = [row[position] if position < len(row) else "" for row in mapping["samples"]][:3]
        readings = _preview_samples(stored, feed_settings, position, field, settings)
        rows.append((position, mapped_column, reasons.get(position), cells, field, settings, readings))
    hidden_positions = [
        position for position, (*_, edit) in enumerate(choices) if edit and position not in portion.items
    ]
    return page.render(
        "sources/mapping.html",
        mapping=mapping,
        source=await page.api.get(f"/v1/sources/{mapping['source']}"),
        rows=rows,
        portion=portion,
        is_single=is_single,
        page_size=COLUMNS_PER_FORM,
        hidden_choices=[
            (f"{name}.{position}", page.form.get(f"{name}.{position}"))
            for position in hidden_positions
            for name in ("field", "settings")
        ],
        field_names=FIELD_NAMES,
        selectable_fields=SELECTABLE_FIELDS,
        is_editable=page.may(WRITE_SCOPE),
    )


@pages.register_get("/mappings/<id>/preview")
async def show_sample_preview(page: PageContext) -> Response:
    """Show the values that a column's samples have with the field and settings in the query."""
    mapping, feed_settings = await _find_mapping(page)
    position = page.query.get_number("position")
    if position is None or position >= len(mapping.headers):
        raise NotFound
    samples = _preview_samples(mapping, feed_settings, position, *_read_choice(page.query, position))
    return page.render("sources/column_preview.html", samples=samples, currency=feed_settings.currency)


@pages.register_post("/mappings/<id>", scope=WRITE_SCOPE, error_view=show_mapping)
async def confirm_mapping(page: PageContext) -> Response:
    """Confirm a column mapping with the changes in the form.

    The paging buttons submit the form with the field `to`. Then the columns from that position are shown, and nothing is
    confirmed.
    """
    if "to" in page.form:
        return await show_mapping(page)
    mapping = await page.api.get(f"/v1/mappings/{page.path_parameters['id']}")
    edits = [edit for *_, edit in _read_choices(mapping, page.form) if edit]
    await page.api.post(f"/v1/mappings/{mapping['id']}/confirm", {"columns": edits} if edits else {})
    notice = gettext("Columns confirmed. The stored file is being re-imported.")
    return page.redirect(f"/console/sources/{mapping['source']}", notice)
