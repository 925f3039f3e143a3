"""One hierarchy of refusals. A class's docstring is the text a caller reads when nothing more exact is known.

`code` is the stable machine code (docs/conventions.md#errors); statuses live at the HTTP edge only.
"""

import errno
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self


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

    @classmethod
    def of(cls, field: str, code: str, detail: str) -> Self:
        """Return the error for one field, by its dotted path, code and sentence."""
        return cls(detail, fields=(FieldError(field, code, detail),))


class InvalidRequest(DomainError):
    """The request is malformed."""

    code = "invalid_request"


class AuthenticationRequired(DomainError):
    """A valid bearer credential is required."""

    code = "authentication_required"


class PermissionDenied(DomainError):
    """This credential does not allow the operation; use one that does."""

    code = "permission_denied"


class InsufficientScope(DomainError):
    """This credential may not read everything that the export holds; use one with every read scope."""

    code = "insufficient_scope"


class FeatureUnavailable(DomainError):
    """The organisation's plan does not include this feature."""

    code = "feature_unavailable"


class NotFound(DomainError):
    """There is nothing with this id that you can see."""

    code = "not_found"


class CursorExpired(DomainError):
    """What follows this cursor is kept no longer (events are kept 30 days), or the log was restored since: read everything you need once more, then follow from a new cursor (cursor=now, taken before you read)."""

    code = "cursor_expired"


class MethodNotAllowed(DomainError):
    """This address does not answer that method; the Allow header names those it does."""

    code = "method_not_allowed"


class Conflict(DomainError):
    """What you want to change is in a state that does not allow this; read it again."""

    code = "conflict"


class RequestInProgress(DomainError):
    """A request with this Idempotency-Key is still being carried out; send it again after the seconds that Retry-After names, and you get its answer."""

    code = "idempotency_request_in_progress"


class IdempotencyKeyReused(DomainError):
    """This Idempotency-Key was used for a request with another method, path or body within 24 hours; use a new key for a new request."""

    code = "idempotency_key_reused"


class PreconditionFailed(DomainError):
    """It has changed since you read it; read it again, and send your change with the new ETag in If-Match."""

    code = "precondition_failed"


class PreconditionRequired(DomainError):
    """Send If-Match with the ETag that you got when you read this, so that nobody else's change is lost; `*` overwrites whatever is there."""

    code = "precondition_required"


class PayloadTooLarge(DomainError):
    """The request body is too large."""

    code = "payload_too_large"


class UnsupportedMediaType(DomainError):
    """Send the body as JSON in UTF-8, with the header Content-Type: application/json."""

    code = "unsupported_media_type"


class Unprocessable(DomainError):
    """The request can be read, but what it asks for cannot be done."""

    code = "unprocessable"


class ModelUnpriced(DomainError):
    """A model without a price cannot be used."""

    code = "model_unpriced"


class UndoUnavailable(DomainError):
    """What this audit entry tells of cannot be undone."""

    code = "undo_unavailable"


class RateLimited(DomainError):
    """The rate budget is spent; nothing was done. Send it again after the seconds that Retry-After names."""

    code = "rate_limited"


class QuotaExceeded(DomainError):
    """A quota of the plan is used up."""

    code = "quota_exceeded"


class Overloaded(DomainError):
    """The service has more to do than it can; nothing was done. Send it again after the seconds that Retry-After names, and wait longer each time."""

    code = "overloaded"


class Unavailable(DomainError):
    """A part that the service depends on is down; nothing was done. Send it again after the seconds that Retry-After names."""

    code = "unavailable"


class SchemaMismatch(Unavailable):
    """The service is being upgraded; try again shortly."""

    def __init__(self) -> None:
        super().__init__(retry_after=5)


class StorageFull(Unavailable):
    """The service has no storage space left; nothing was changed. Retry after the seconds in Retry-After."""

    def __init__(self, detail: str | None = None) -> None:
        super().__init__(detail, retry_after=30)


def is_storage_full(error: BaseException) -> bool:
    """Return whether a write failed because the disk or a quota is full."""
    return isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}


class LeaseLost(DomainError):
    """The work was taken over by another worker."""

    code = "internal_error"
