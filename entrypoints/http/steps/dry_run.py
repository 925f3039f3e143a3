"""Part of reading parameters: whether the request only asks what would happen."""

from domain.kernel.errors import FieldError, InvalidRequest
from entrypoints.http.request_state import RequestState


def read_dry_run(state: RequestState) -> None:
    """Service-Dry-Run on writes is `true` or `explain`; reads change nothing anyway."""
    given = state.request.headers.get("service-dry-run")
    if given is None or state.route.reads:
        return
    if given not in ("true", "explain"):
        detail = "Service-Dry-Run is `true` or `explain`."
        raise InvalidRequest(detail, fields=(FieldError("header.Service-Dry-Run", "invalid_value", detail),))
    state.dry_run = given
