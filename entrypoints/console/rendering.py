"""Templates, compiled once a process: everything is escaped unless a macro made it, and a name that is missing is an error."""

from functools import cache
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.runtime import Macro

from entrypoints.console import formatting
from entrypoints.console.portions import shortened
from entrypoints.console.static_files import static_files

COMPONENTS: Final = ("icons", "parts", "forms", "charts", "products")
"""The templates whose macros every other one has."""


@cache
def environment() -> Environment:
    """The templates of this process."""
    made = Environment(
        loader=PackageLoader("entrypoints.console", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        cache_size=-1,
    )
    made.filters.update(formatting.FILTERS)
    made.filters["shortened"] = shortened
    for name in COMPONENTS:
        # Macros are there in every template under their names: a block that is rendered alone runs no import of its template.
        module = made.get_template(f"components/{name}.html").module
        made.globals.update({known: value for known, value in vars(module).items() if isinstance(value, Macro)})
    made.globals["whole_number"] = formatting.number
    made.globals["static"] = static_files().address
    return made


def rendered(template: str, block: str | None, values: dict[str, Any]) -> str:
    """The template's text, or that of one block of it, where it has one of that name."""
    found = environment().get_template(template)
    part = found.blocks.get(block) if block is not None else None
    if part is None:
        return found.render(values)
    return "".join(part(found.new_context(values))).strip()
