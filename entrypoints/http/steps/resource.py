"""Twelfth step: ids in the path. A malformed one, or one of another kind, is answered like an unknown one."""

from domain.kernel.errors import NotFound
from domain.kernel.ids import is_id
from entrypoints.http.visit import Visit


def check_ids(visit: Visit) -> None:
    """Raises NotFound."""
    ids = visit.match.ids
    if not ids:
        return
    for name, prefix in visit.operation.ids.items():
        if not is_id(prefix, ids[name]):
            raise NotFound
