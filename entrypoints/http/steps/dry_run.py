"""Part of reading parameters: whether the request only asks what would happen."""

from domain.kernel.errors import FieldError, InvalidRequest
from entrypoints.http.visit import Visit


def read_dry_run(visit: Visit) -> None:
    """Service-Dry-Run on writes is `true` or `explain`; reads change nothing anyway."""
    given = visit.request.headers.get("service-dry-run")
    if given is None or visit.route.reads:
        return
    if given not in ("true", "explain"):
        detail = "Service-Dry-Run is `true` or `explain`."
        raise InvalidRequest(detail, fields=(FieldError("header.Service-Dry-Run", "invalid_value", detail),))
    visit.dry_run = given
