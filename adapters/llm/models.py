"""Client of a model provider, for models with a known price, which validates the output of the models."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

from adapters.llm.dialect import MAX_OUTPUT_TOKENS, InvalidResponse, ModelApiFormat, ModelRequest, ModelResponse
from adapters.llm.json_text import parse_json, require_object
from adapters.llm.pricing import TokenPrice
from domain.kernel.clock import now
from ports.language_models import (
    ModelAccessRefused,
    ModelOutput,
    ModelPrompt,
    ModelRefused,
    ModelUnavailable,
    ModelUsage,
)
from ports.outbound import OutboundClient, OutboundFailed, OutboundResponse
from ports.schemas import SchemaValidator

_REQUEST_BYTES = 256 * 1024
_OVERHEAD_TOKENS = 1_000
"""Assumed maximum of the tokens that a provider adds to a request for roles, tools and schemas."""
_RETRY_STATUSES = frozenset({408, 409, 425, 429})
_REFUSAL_STATUSES = frozenset({401, 402, 403, 404})
_MAX_WAIT = timedelta(days=1)
_MAX_REASON_CHARS = 300


@dataclass(frozen=True, slots=True)
class ProviderModels:
    """Language models of one provider (port LanguageModels in ports/language_models.py).

    Attributes:
        outbound: The HTTP client.
        api_format: The format of the API's requests and responses.
        schema_validator: Validates the output of the models.
        base_url: The base URL of the API.
        default_model: The default model.
        prices: The prices by model; models without a price are not used.
        api_key: The API key, which appears in no representation, error or log.
    """

    outbound: OutboundClient
    api_format: ModelApiFormat
    schema_validator: SchemaValidator
    base_url: str
    default_model: str
    prices: Mapping[str, TokenPrice]
    api_key: str | None = field(default=None, repr=False)

    def is_configured(self, model: str | None) -> bool:
        return (model or self.default_model) in self.prices

    def estimate_max_usage(self, prompt: ModelPrompt) -> ModelUsage:
        """Return the maximum possible usage of a prompt.

        The input is one token per byte of the request plus _OVERHEAD_TOKENS; the output is MAX_OUTPUT_TOKENS.
        """
        _, body = self._prepare_request(prompt)
        model = prompt.model or self.default_model
        return self.prices[model].compute_usage(model, len(body) + _OVERHEAD_TOKENS, MAX_OUTPUT_TOKENS)

    async def generate(self, prompt: ModelPrompt) -> ModelOutput:
        request, body = self._prepare_request(prompt)
        max_usage = self.estimate_max_usage(prompt)
        headers = {**request.headers, "Content-Type": "application/json", "Accept": "application/json"}
        try:
            response = await self.outbound.request("POST", self.base_url + request.path, headers, body)
        except OutboundFailed as failure:
            if failure.partial_response is None:
                raise ModelUnavailable(str(failure), usage=None if failure.is_unsent else max_usage) from None
            _raise_for_status(failure.partial_response)
            raise ModelRefused(
                "The model's response is too large or cannot be decompressed.", usage=max_usage
            ) from None
        _raise_for_status(response)
        return self._parse_response(prompt, response, max_usage)

    def _prepare_request(self, prompt: ModelPrompt) -> tuple[ModelRequest, bytes]:
        """Return the request for a prompt, and its body. Raises ModelAccessRefused or ModelRefused."""
        model = prompt.model or self.default_model
        if model not in self.prices:
            raise ModelAccessRefused("The requested language model has no price. Add one to JOINERY_MODEL_PRICES.")
        request = self.api_format.build_request(prompt, model, self.api_key)
        body = json.dumps(request.body).encode("ascii")
        if len(body) > _REQUEST_BYTES:
            raise ModelRefused(
                f"The request to the model is larger than {_REQUEST_BYTES // 1024} KiB and was not sent."
            )
        return request, body

    def _parse_response(self, prompt: ModelPrompt, response: OutboundResponse, max_usage: ModelUsage) -> ModelOutput:
        """Return the validated output of the model. Raises ModelRefused."""
        try:
            content = self.api_format.parse_response(require_object(parse_json(response.body), "response"))
        except InvalidResponse as fault:
            raise ModelRefused(
                f"The provider's response does not have the format of its API: {fault}", usage=max_usage
            ) from None
        usage = self._compute_usage(content, prompt.model or self.default_model, max_usage)
        if content.refusal_reason is not None:
            raise ModelRefused(content.refusal_reason[:_MAX_REASON_CHARS], usage=usage)
        if field_errors := self.schema_validator.find_field_errors(prompt.schema, content.output, "answer"):
            reason = (
                f"The model's answer does not conform to the schema: {field_errors[0].field}: {field_errors[0].detail}"
            )
            raise ModelRefused(reason[:_MAX_REASON_CHARS], usage=usage)
        return ModelOutput(content.output, usage)

    def _compute_usage(self, content: ModelResponse, model: str, max_usage: ModelUsage) -> ModelUsage:
        """Return the usage that the response states, with the numbers of `max_usage` for those that are missing."""
        read = max_usage.input_tokens if content.input_tokens is None else content.input_tokens
        written = max_usage.output_tokens if content.output_tokens is None else content.output_tokens
        counted = self.prices[model].compute_usage(model, read, written)
        return ModelUsage(_validate_model_name(content.model) or model, read, written, counted.cost_micros)


def _validate_model_name(name: str | None) -> str | None:
    """Return the name of a model if it has 1 to 100 characters, all printable, else None."""
    return name if name and len(name) <= 100 and name.isprintable() else None


def _raise_for_status(response: OutboundResponse) -> None:
    """Raise the error for a response whose status is not 200. The error never contains text of the response, which may contain keys."""
    status = response.status
    if status == 200:
        return
    if status in _RETRY_STATUSES or status >= 500:
        raise ModelUnavailable(
            f"The provider returned {status}.", retry_after=_parse_retry_after(response.headers.get("Retry-After"))
        )
    if status in _REFUSAL_STATUSES or 300 <= status < 400:
        raise ModelAccessRefused(
            f"The provider denied access ({status}). Check the key, the account and the model's name."
        )
    raise ModelRefused(f"The provider rejected the request ({status}{_format_error_type(response.body)}).")


def _format_error_type(body: bytes) -> str:
    """Return the error type in a response as `, <type>` for an error message; empty unless the type is an identifier."""
    try:
        error: Any = require_object(parse_json(body), "response").get("error")
    except InvalidResponse:
        return ""
    kind = error.get("type") if isinstance(error, Mapping) else None
    return f", {kind}" if isinstance(kind, str) and len(kind) <= 40 and kind.isidentifier() and kind.isascii() else ""


def _parse_retry_after(text: str | None) -> timedelta | None:
    """Return the delay that the header Retry-After states (seconds or a date), at most a day; None if it is missing or invalid."""
    given = (text or "").strip()
    if given.isascii() and given.isdigit():
        return min(_MAX_WAIT, timedelta(seconds=int(given[:9])))
    try:
        until = parsedate_to_datetime(given)
    except (ValueError, TypeError, IndexError):
        return None
    wait = until.replace(tzinfo=until.tzinfo or UTC) - now()
    return min(_MAX_WAIT, max(timedelta(), wait))
