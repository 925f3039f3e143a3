"""Every error code the service answers with: status, title, cause and remedy, published at /errors/<code>."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Code:
    """One stable machine code (specification, Errors; decisions.md §1)."""

    name: str
    status: int
    title: str
    cause: str
    remedy: str


def _code(name: str, status: int, title: str, cause: str, remedy: str) -> tuple[str, Code]:
    return name, Code(name, status, title, cause, remedy)


CODES: Final[dict[str, Code]] = dict(
    (
        _code(
            "invalid_request",
            400,
            "Invalid request",
            "A parameter, header or body field is missing, unknown, of the wrong type or out of range, a cursor was not "
            "issued for this list, or Service-Mode or Service-Version names something that does not apply.",
            "Read errors[]: each entry names one field by its dotted path with a code of its own. Correct the request; "
            "sending it again unchanged gives the same answer.",
        ),
        _code(
            "authentication_required",
            401,
            "Authentication required",
            "No bearer credential was sent, or it is malformed, unknown, revoked or expired, or may not be used from this "
            "address. The answer is the same for every reason.",
            "Send `Authorization: Bearer <credential>` with a credential in force. Check that the key was copied whole, "
            "has not been revoked, and that its address policy allows your address.",
        ),
        _code(
            "payment_declined",
            402,
            "Payment declined",
            "The card was declined by its issuer.",
            "Use another card, or ask the issuer; then try again.",
        ),
        _code(
            "permission_denied",
            403,
            "Permission denied",
            "The credential is valid but lacks the scope, the member's role does not allow it, or only a person may do it.",
            "Use a credential with the scope that the detail names, or ask an owner or admin of the organisation.",
        ),
        _code(
            "feature_unavailable",
            403,
            "Feature not in plan",
            "The organisation's plan does not include the feature that the detail names.",
            "Change to a plan that includes it.",
        ),
        _code(
            "insufficient_scope",
            403,
            "Insufficient scope",
            "An export of the whole organisation needs the read permission of every dataset in it.",
            "Use a credential that holds every read scope.",
        ),
        _code(
            "support_token_required",
            403,
            "Support token required",
            "This action by the service's staff needs a support token that the organisation has given.",
            "Ask an owner of the organisation for a support token.",
        ),
        _code(
            "support_token_invalid",
            403,
            "Support token invalid",
            "The support token is unknown, expired or for another organisation.",
            "Ask an owner of the organisation for a new support token.",
        ),
        _code(
            "support_renewal_required",
            403,
            "Support access must be renewed",
            "The time for which the organisation allowed support access is over.",
            "Ask an owner of the organisation to renew it.",
        ),
        _code(
            "not_found",
            404,
            "Not found",
            "Nothing of yours has that address: the id is malformed, of another kind, unknown, or belongs to another "
            "organisation or to the other mode.",
            "Check the id and its prefix, and that you use a live credential for live data and a test one for test data.",
        ),
        _code(
            "method_not_allowed",
            405,
            "Method not allowed",
            "The address exists but does not answer this method.",
            "Use one of the methods that the Allow header names.",
        ),
        _code(
            "conflict",
            409,
            "Conflict",
            "The resource is in a state that does not allow this now, for example a run is active already.",
            "Read the resource, and try again once its state allows it.",
        ),
        _code(
            "idempotency_request_in_progress",
            409,
            "Request in progress",
            "Another request with the same Idempotency-Key is still being carried out.",
            "Wait the seconds that Retry-After names and send the same request again: it answers what the first one did.",
        ),
        _code(
            "memory_limit",
            409,
            "Too many memories",
            "A person and an organisation may each have 25 assistant memories.",
            "Delete a memory that is no longer needed.",
        ),
        _code(
            "brand_unverified",
            409,
            "Brand not verified",
            "A catalogue can be published only once the brand is verified.",
            "Claim the vendor profile and have the claim approved.",
        ),
        _code(
            "cursor_expired",
            410,
            "Cursor expired",
            "The cursor is older than the events that are kept (30 days).",
            "Take a new export and follow the feed from its changes_cursor, or start without a cursor.",
        ),
        _code(
            "precondition_failed",
            412,
            "Precondition failed",
            "The resource has changed since you read it, so its version is not the one in If-Match.",
            "Read it again, apply your change to what you find, and send it with the new ETag.",
        ),
        _code(
            "payload_too_large",
            413,
            "Body too large",
            "Bodies may have 1 MiB, and 5 MiB where records are pushed.",
            "Split the request, or use an upload.",
        ),
        _code(
            "unsupported_media_type",
            415,
            "Unsupported media type",
            "A body was sent without `Content-Type: application/json`, or in another encoding than UTF-8.",
            "Send JSON in UTF-8 with `Content-Type: application/json`.",
        ),
        _code(
            "unprocessable",
            422,
            "Unprocessable",
            "The request is well formed, but what it asks cannot be done with this resource.",
            "Read the detail; the request has to be a different one.",
        ),
        _code(
            "idempotency_key_reused",
            422,
            "Idempotency-Key reused",
            "The key was used within 24 hours for a request with another method, path or body.",
            "Use a new key for each new request, and the same key only when repeating the same one.",
        ),
        _code(
            "undo_unavailable",
            422,
            "Cannot be undone",
            "The change in the audit log cannot be undone.",
            "Make the opposite change yourself.",
        ),
        _code(
            "currency_unsupported",
            422,
            "Currency not supported",
            "The currency is not one that this operation can work with.",
            "Use a supported currency.",
        ),
        _code(
            "model_unpriced",
            422,
            "Model has no price",
            "A model without a price cannot be used.",
            "Choose another model, or have the operator set its price.",
        ),
        _code(
            "price_notice_too_short",
            422,
            "Price notice too short",
            "A price rise must be announced 30 days ahead.",
            "Choose a later date.",
        ),
        _code(
            "precondition_required",
            428,
            "Precondition required",
            "This operation changes a resource that others may change as well, and If-Match is missing.",
            "Send If-Match with the ETag of the representation you read, or `*` to overwrite whatever is there.",
        ),
        _code(
            "rate_limited",
            429,
            "Rate limited",
            "The organisation's budget of this rate class is spent. The request did nothing.",
            "Wait the seconds that Retry-After names. RateLimit tells on every response how much is left.",
        ),
        _code(
            "quota_exceeded",
            429,
            "Monthly quota spent",
            "The plan's monthly amount of a meter is used up.",
            "Wait for the month's end, which Retry-After counts to, or change to a larger plan.",
        ),
        _code(
            "ai_budget_reached",
            429,
            "AI budget reached",
            "Today's assistant allowance or your own budget is spent.",
            "Wait until tomorrow, or buy credit and allow it to be spent.",
        ),
        _code(
            "internal_error",
            500,
            "Internal error",
            "Something went wrong on our side. It has been logged with the request_id.",
            "Try again with the same Idempotency-Key. If it happens again, tell support the request_id.",
        ),
        _code(
            "unavailable",
            503,
            "Temporarily unavailable",
            "A part that the service depends on is down. Nothing was done.",
            "Wait the seconds that Retry-After names and try again. GET /v1/status tells how the service is doing.",
        ),
        _code(
            "overloaded",
            503,
            "Overloaded",
            "The service is shedding load. Nothing was done.",
            "Wait the seconds that Retry-After names, then retry with backoff and jitter.",
        ),
    )
)

FIELD_CODES: Final[dict[str, str]] = {
    "required": "The field is missing.",
    "unknown_field": "There is no such field or parameter here.",
    "invalid_type": "The value has the wrong JSON type.",
    "invalid_format": "The text does not have the form asked for.",
    "invalid_value": "The value is not one of those allowed.",
    "too_long": "The text has too many characters.",
    "too_short": "The text has too few characters.",
    "too_large": "The number is too large.",
    "too_small": "The number is too small.",
    "too_many": "The list or object has too many entries.",
    "too_few": "The list or object has too few entries.",
    "invalid_cursor": "The cursor was not issued for this list with these filters.",
    "duplicate": "The value or field is given more than once.",
}
"""The codes of errors[] entries."""
