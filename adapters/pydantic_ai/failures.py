"""Translation of errors of pydantic-ai to those of the port, which contain no text of the provider."""

from datetime import timedelta

from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelAPIError,
    ModelConnectionError,
    ModelHTTPError,
    ModelRateLimitError,
    ModelRequestRejectedError,
    ModelRequestTimeout,
    ModelServerError,
    ModelUnavailableError,
)

from adapters.pydantic_ai.transport import UnusableResponse
from ports.language_models import ModelAccessRefused, ModelRefused, ModelUnavailable, ModelUsage

_RETRY_STATUSES = frozenset({408, 409, 425, 429})
_REFUSAL_STATUSES = frozenset({401, 402, 403, 404})
_MAX_WAIT_SECONDS = 86_400.0


def translate_failure(error: Exception, max_usage: ModelUsage | None) -> ModelUnavailable | ModelRefused:
    """Return the error of the port for an error of a request, which may also occur within a stream.

    Args:
        error: The error, which should not be the cause or the context of the result: its text may contain secrets.
        max_usage: The usage that counts if the provider may have charged the request.
    """
    if (unusable := _find_unusable_response(error)) is not None:
        return _translate_unusable_response(unusable, max_usage)
    match error:
        case ModelUnavailable() | ModelRefused():
            return error
        case ModelHTTPError():
            return _translate_status(error, max_usage if error.in_stream else None)
        case ModelRequestTimeout():
            return ModelUnavailable("The provider did not respond in time.", usage=max_usage)
        case ModelConnectionError(phase="connect" | "pool"):
            return ModelUnavailable("The connection to the provider failed.")
        case ModelConnectionError():
            return ModelUnavailable("The connection to the provider broke off.", usage=max_usage)
        case ModelRateLimitError() | ModelUnavailableError() | ModelServerError():
            return ModelUnavailable("The provider is temporarily unavailable.", usage=max_usage)
        case ContentFilterError():
            return ModelRefused("The provider's content filter removed the answer.", usage=max_usage)
        case ModelRequestRejectedError():
            return ModelRefused(f"The provider rejects such requests ({type(error).__name__}).")
        case _:
            reason = "its response is not JSON" if isinstance(error, ModelAPIError) else type(error).__name__
            return ModelRefused(
                f"The provider's response does not have the format of its API ({reason}).", usage=max_usage
            )


def _translate_status(error: ModelHTTPError, usage: ModelUsage | None) -> ModelUnavailable | ModelRefused:
    """Return the error for a status, of a response or of an error within a stream."""
    status, kind = error.status_code, error.provider_error_type
    if status in _RETRY_STATUSES or status >= 500:
        wait = None if error.retry_after is None else timedelta(seconds=min(error.retry_after, _MAX_WAIT_SECONDS))
        return ModelUnavailable(f"The provider returned {status}.", retry_after=wait, usage=usage)
    if status in _REFUSAL_STATUSES:
        return _create_access_refusal(status, usage)
    is_identifier = kind is not None and len(kind) <= 40 and kind.isascii() and kind.isidentifier()
    return ModelRefused(
        f"The provider rejected the request ({status}{f', {kind}' if is_identifier else ''}).", usage=usage
    )


def _translate_unusable_response(response: UnusableResponse, max_usage: ModelUsage | None) -> ModelRefused:
    """Return the error for a response that the transport refused."""
    if response.status == 200:
        return ModelRefused(str(response), usage=max_usage)
    if 300 <= response.status < 400:
        return _create_access_refusal(response.status)
    return ModelRefused(f"The provider rejected the request ({response.status}).")


def _create_access_refusal(status: int, usage: ModelUsage | None = None) -> ModelAccessRefused:
    return ModelAccessRefused(
        f"The provider denied access ({status}). Check the key, the account and the model's name.", usage=usage
    )


def _find_unusable_response(error: BaseException | None) -> UnusableResponse | None:
    """Return the response that the transport refused and the SDK wrapped; None if there is none."""
    while error is not None and not isinstance(error, UnusableResponse):
        error = error.__cause__
    return error
