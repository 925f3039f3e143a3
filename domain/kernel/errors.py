"""Errors of the domain. The first line of an error class's docstring is the default message to callers.

`code` is the stable, machine-readable code (docs/conventions.md#errors). Only the HTTP layer knows statuses.
"""

import errno
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self


@dataclass(frozen=True, slots=True)
class FieldError:
    """Invalid field of a request: its dotted path, a code (docs/conventions.md#error-fields) and a sentence."""

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
    def for_field(cls, field: str, code: str, detail: str) -> Self:
        """Return the error for one invalid field: its dotted path, a code, and a sentence that is also the error's message."""
        return cls(detail, fields=(FieldError(field, code, detail),))


class InvalidRequest(DomainError):
    """The request is malformed."""

    code = "invalid_request"


class AuthenticationRequired(DomainError):
    """A valid bearer credential is required."""

    code = "authentication_required"


class PaymentDeclined(DomainError):
    """The card was declined. Use another card, or contact the card's issuer."""

    code = "payment_declined"


class PermissionDenied(DomainError):
    """This credential does not permit the operation. Use a credential that permits it."""

    code = "permission_denied"


class InsufficientScope(DomainError):
    """This credential lacks scopes for some data of the export. Use a credential with all read scopes."""

    code = "insufficient_scope"


class FeatureUnavailable(DomainError):
    """The organisation's plan does not include this feature."""

    code = "feature_unavailable"


class NotFound(DomainError):
    """The object does not exist, or you cannot see it. Check the ID."""

    code = "not_found"


class CursorExpired(DomainError):
    """The cursor has expired, because events are kept for 30 days or the log was restored. Get a new cursor (cursor=now), read all data again, then continue from the new cursor."""

    code = "cursor_expired"


class MethodNotAllowed(DomainError):
    """This URL does not support the method. Use a method from the Allow header."""

    code = "method_not_allowed"


class Conflict(DomainError):
    """The object's state does not allow this change. Read the object again."""

    code = "conflict"


class MemoryLimitReached(DomainError):
    """The maximum number of memories is stored. Delete one first."""

    code = "memory_limit"


class BrandUnverified(DomainError):
    """The vendor profile is not verified. Claim the brand first."""

    code = "brand_unverified"


class RequestInProgress(DomainError):
    """A request with this Idempotency-Key is still running. Send it again after the seconds in Retry-After to get its response."""

    code = "idempotency_request_in_progress"


class IdempotencyKeyReused(DomainError):
    """This Idempotency-Key was used for another method, path or body within 24 hours. Use a new key for a new request."""

    code = "idempotency_key_reused"


class PreconditionFailed(DomainError):
    """The object has changed since you read it. Read it again, then send your change with the new ETag in If-Match."""

    code = "precondition_failed"


class PreconditionRequired(DomainError):
    """The header If-Match is missing. Send the ETag of the version that you read, or `*` to overwrite any version."""

    code = "precondition_required"


class PayloadTooLarge(DomainError):
    """The request body is too large."""

    code = "payload_too_large"


class UnsupportedMediaType(DomainError):
    """The media type of the body is not supported. Send JSON in UTF-8, with the header Content-Type: application/json."""

    code = "unsupported_media_type"


class Unprocessable(DomainError):
    """The request is well-formed but cannot be carried out."""

    code = "unprocessable"


class ModelUnpriced(DomainError):
    """The language model has no configured price, so it cannot be used. Select another model, or ask the operator to configure its price."""

    code = "model_unpriced"


class CurrencyUnsupported(DomainError):
    """This currency is not supported."""

    code = "currency_unsupported"


class PriceNoticeTooShort(DomainError):
    """A higher price must be announced at least 30 days before it applies. Choose a later date."""

    code = "price_notice_too_short"


class UndoUnavailable(DomainError):
    """The change of this audit entry cannot be undone."""

    code = "undo_unavailable"


class RateLimited(DomainError):
    """The rate limit is exceeded. Nothing was done. Retry after the seconds in Retry-After."""

    code = "rate_limited"


class QuotaExceeded(DomainError):
    """A quota of the plan is used up."""

    code = "quota_exceeded"


class AiBudgetReached(DomainError):
    """The budget for the assistant is spent."""

    code = "ai_budget_reached"


class Overloaded(DomainError):
    """The service is overloaded. Nothing was done. Retry after the seconds in Retry-After, and wait longer each time."""

    code = "overloaded"


class Unavailable(DomainError):
    """A dependency of the service is unavailable. Nothing was done. Retry after the seconds in Retry-After."""

    code = "unavailable"


class SchemaMismatch(Unavailable):
    """The service is being upgraded. Try again shortly."""

    def __init__(self) -> None:
        super().__init__(retry_after=5)


class StorageFull(Unavailable):
    """The service has no storage space left. Nothing was changed. Retry after the seconds in Retry-After."""

    def __init__(self, detail: str | None = None) -> None:
        super().__init__(detail, retry_after=30)


def is_storage_full(error: BaseException) -> bool:
    """Return whether a write failed because the disk or a quota is full."""
    return isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}


class LeaseLost(DomainError):
    """The work was taken over by another worker."""

    code = "internal_error"
