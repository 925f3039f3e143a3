"""Questions to a provider: for models with a price, within limits, with validated answers."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

from adapters.llm.dialect import MOST_TOKENS, BadAnswer, Dialect, Request, Said
from adapters.llm.json_text import object_of, value_of
from adapters.llm.pricing import Price
from domain.kernel.clock import now
from ports.models import ModelAnswer, ModelLater, ModelQuestion, ModelRefused, ModelsClosed, ModelUsage
from ports.outbound import Outbound, OutboundAnswer, OutboundFailed
from ports.schemas import Schemas

_REQUEST_BYTES = 256 * 1024
_BESIDE = 1_000
"""Tokens that a provider may add to a request for roles, tools and schemas."""
_LATER = frozenset({408, 409, 425, 429})
_CLOSED = frozenset({401, 402, 403, 404})
_LONGEST = timedelta(days=1)
_REASON = 300


@dataclass(frozen=True, slots=True)
class ProviderModels:
    """Models of one provider at the address `base`. `model` is the default; only models with a price are used.

    `key` appears in no representation, error or log.
    """

    outbound: Outbound
    dialect: Dialect
    schemas: Schemas
    base: str
    model: str
    prices: Mapping[str, Price]
    key: str | None = field(default=None, repr=False)

    def offers(self, model: str | None) -> bool:
        return (model or self.model) in self.prices

    def most(self, question: ModelQuestion) -> ModelUsage:
        """Return the highest possible usage; a token has at least one byte, so a request's bytes bound its tokens."""
        _, body = self._prepared(question)
        model = question.model or self.model
        return self.prices[model].usage(model, len(body) + _BESIDE, MOST_TOKENS)

    async def ask(self, question: ModelQuestion) -> ModelAnswer:
        request, body = self._prepared(question)
        most = self.most(question)
        headers = {**request.headers, "Content-Type": "application/json", "Accept": "application/json"}
        try:
            answer = await self.outbound.ask("POST", self.base + request.path, headers, body)
        except OutboundFailed as failure:
            if failure.begun is None:
                raise ModelLater(str(failure), usage=None if failure.is_unsent else most) from None
            _refuse(failure.begun)
            raise ModelRefused("The response is too large, or compressed.", usage=most) from None
        _refuse(answer)
        return self._checked(question, answer, most)

    def _prepared(self, question: ModelQuestion) -> tuple[Request, bytes]:
        model = question.model or self.model
        if model not in self.prices:
            raise ModelsClosed("The requested model has no price, so it is not used.")
        request = self.dialect.request(question, model, self.key)
        body = json.dumps(request.body).encode("ascii")
        if len(body) > _REQUEST_BYTES:
            raise ModelRefused("The question is too large.")
        return request, body

    def _checked(self, question: ModelQuestion, answer: OutboundAnswer, most: ModelUsage) -> ModelAnswer:
        try:
            content = self.dialect.said(object_of(value_of(answer.body), "answer"))
        except BadAnswer as fault:
            raise ModelRefused(f"The answer is of another shape: {fault}", usage=most) from None
        usage = self._usage(content, question.model or self.model, most)
        if content.refused is not None:
            raise ModelRefused(content.refused[:_REASON], usage=usage)
        if faults := self.schemas.faults(question.schema, content.value, "answer"):
            reason = f"The answer is of another shape: {faults[0].field}: {faults[0].detail}"
            raise ModelRefused(reason[:_REASON], usage=usage)
        return ModelAnswer(content.value, usage)

    def _usage(self, content: Said, model: str, most: ModelUsage) -> ModelUsage:
        """Return the usage by the provider's count, or the highest possible one if it states none."""
        read = most.input_tokens if content.input_tokens is None else content.input_tokens
        written = most.output_tokens if content.output_tokens is None else content.output_tokens
        counted = self.prices[model].usage(model, read, written)
        return ModelUsage(_name(content.model) or model, read, written, counted.cost_micros)


def _name(given: str | None) -> str | None:
    """Return the provider's name of the model if it can be stored, else None."""
    return given if given and len(given) <= 100 and given.isprintable() else None


def _refuse(answer: OutboundAnswer) -> None:
    """Raise the error for a response with another status than 200. Its text is not repeated, as it may quote keys."""
    status = answer.status
    if status == 200:
        return
    if status in _LATER or status >= 500:
        raise ModelLater(f"The provider answered {status}.", after=_after(answer.headers.get("Retry-After")))
    if status in _CLOSED or 300 <= status < 400:
        raise ModelsClosed(f"The provider refuses access ({status}). Check the key, the account and the model's name.")
    raise ModelRefused(f"The provider refused the question ({status}{_kind(answer.body)}).")


def _kind(body: bytes) -> str:
    """Return the error's type, a constant of the API, or an empty text."""
    try:
        error: Any = object_of(value_of(body), "answer").get("error")
    except BadAnswer:
        return ""
    kind = error.get("type") if isinstance(error, Mapping) else None
    return f", {kind}" if isinstance(kind, str) and len(kind) <= 40 and kind.isidentifier() and kind.isascii() else ""


def _after(text: str | None) -> timedelta | None:
    """Return the wait of Retry-After (seconds or a date), at most a day; None if it is unreadable."""
    given = (text or "").strip()
    if given.isascii() and given.isdigit():
        return min(_LONGEST, timedelta(seconds=int(given[:9])))
    try:
        until = parsedate_to_datetime(given)
    except (ValueError, TypeError, IndexError):
        return None
    wait = until.replace(tzinfo=until.tzinfo or UTC) - now()
    return min(_LONGEST, max(timedelta(), wait))
