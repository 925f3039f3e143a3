"""What a text must look like, in words: nobody should have to read a regular expression to mend a request.

A schema says it beside its `pattern`, as `x-words`; ids and formats say it here.
"""

from collections.abc import Mapping
from typing import Any, Final

from domain.kernel.ids import LENGTH, NOUNS, prefix_in

_FORMATS: Final = {
    "date-time": "a time with its offset (RFC 3339)",
    "date": "a calendar date, year-month-day",
    "uri": "an address",
    "email": "an e-mail address",
    "hostname": "a host name",
}


def words_of(schema: Mapping[str, Any]) -> str | None:
    """What the schema's pattern or format asks for, or None where nothing says so."""
    prefix = prefix_in(str(schema.get("pattern", "")))
    if prefix is not None:
        return id_words(prefix)
    words = schema.get("x-words") or _FORMATS.get(str(schema.get("format")))
    return None if words is None else str(words)


def id_words(prefix: str) -> str:
    """What an id of that kind is: `the id of a product (prod_ and 22 letters and digits)`."""
    return f"the id of {NOUNS[prefix]} ({prefix}_ and {LENGTH} letters and digits)"
