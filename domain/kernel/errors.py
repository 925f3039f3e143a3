"""One hierarchy of refusals. A class's docstring is the text a caller reads when nothing more exact is known.

`code` is the stable machine code (docs/conventions.md#errors); statuses live at the HTTP edge only.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class FieldError:
    """One offending field: its dotted path, a code (docs/conventions.md#error-fields) and a sentence."""

    field: str
    code: str
    detail: str


class DomainError(Exception):
    """The request could not be carried out."""

    code: ClassVar[str] = "internal_error"

    def __init__(
        self,
        detail: str | None = None,
        *,
        fields: tuple[FieldError, ...] = (),
        retry_after: int | None = None,
        extra: Mapping[str, object] | None = None,
    ) -> None:
        self.detail = detail or (type(self).__doc__ or "").strip().split("\n")[0]
        self.fields = fields
        self.retry_after = retry_after
        self.extra = extra or {}
        super().__init__(self.detail)


class InvalidRequest(DomainError):
    """The request is malformed."""

    code = "invalid_request"


class AuthenticationRequired(DomainError):
    """A valid bearer credential is required."""

    code = "authentication_required"


class PermissionDenied(DomainError):
    """This credential does not allow the operation."""

    code = "permission_denied"


class FeatureUnavailable(DomainError):
    """The organisation's plan does not include this feature."""

    code = "feature_unavailable"


class NotFound(DomainError):
    """There is no such resource."""

    code = "not_found"


class CursorExpired(DomainError):
    """What follows this cursor is kept no longer, or is not what it was: start without a cursor, or from the changes_cursor of a new export."""

    code = "cursor_expired"


class MethodNotAllowed(DomainError):
    """This address does not answer that method."""

    code = "method_not_allowed"


class Conflict(DomainError):
    """The resource is in a state that does not allow this."""

    code = "conflict"


class RequestInProgress(DomainError):
    """A request with this Idempotency-Key is still being processed."""

    code = "idempotency_request_in_progress"


class IdempotencyKeyReused(DomainError):
    """This Idempotency-Key was used for another request."""

    code = "idempotency_key_reused"


class PreconditionFailed(DomainError):
    """The resource has changed since it was read."""

    code = "precondition_failed"


class PreconditionRequired(DomainError):
    """This operation needs an If-Match header with the ETag of the representation read."""

    code = "precondition_required"


class PayloadTooLarge(DomainError):
    """The request body is too large."""

    code = "payload_too_large"


class UnsupportedMediaType(DomainError):
    """The request body must be application/json."""

    code = "unsupported_media_type"


class Unprocessable(DomainError):
    """The request is well formed but cannot be carried out."""

    code = "unprocessable"


class RateLimited(DomainError):
    """The rate budget is spent; nothing was done."""

    code = "rate_limited"


class QuotaExceeded(DomainError):
    """A quota of the plan is used up."""

    code = "quota_exceeded"


class Overloaded(DomainError):
    """The service is shedding load; nothing was done. Retry with backoff and jitter."""

    code = "overloaded"


class Unavailable(DomainError):
    """A part the service depends on is down; nothing was done."""

    code = "unavailable"


class LeaseLost(DomainError):
    """The work was taken over by another worker."""

    code = "internal_error"
