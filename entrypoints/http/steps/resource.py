"""Twelfth step: ids in the path. A malformed one, or one of another kind, is answered like an unknown one."""

from typing import Final

from domain.kernel.errors import NotFound
from domain.kernel.ids import is_id
from entrypoints.http.request_state import RequestState

LONGEST: Final = 200
"""Characters of a path parameter that is no id."""


def _is_word(text: str) -> bool:
    return len(text) <= LONGEST and text.isprintable()


def check_ids(state: RequestState) -> None:
    """Raises NotFound."""
    ids = state.match.ids
    if not ids:
        return
    prefixes = state.operation.ids
    for name, text in ids.items():
        prefix = prefixes.get(name)
        if not (is_id(prefix, text) if prefix is not None else _is_word(text)):
            raise NotFound
