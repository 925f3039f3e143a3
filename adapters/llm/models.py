"""Questions put to a provider: to models that have a price, within bounds, with answers that are checked."""

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
"""Tokens that a provider may add to what it is sent: its own words around roles, tools and schemas."""
_LATER = frozenset({408, 409, 425, 429})
_CLOSED = frozenset({401, 402, 403, 404})
_LONGEST = timedelta(days=1)
_REASON = 300


@dataclass(frozen=True, slots=True)
class ProviderModels:
    """Models of one provider at the address `base`. `model` is asked unless a question names another; only those with a price are.

    `key` is shown by nothing: neither by this value, nor by an error, nor in a log.
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
        """A token is a byte at least, so a request's bytes bound those that are read."""
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
            raise ModelRefused("The answer is too large, or packed.", usage=most) from None
        _refuse(answer)
        return self._checked(question, answer, most)

    def _prepared(self, question: ModelQuestion) -> tuple[Request, bytes]:
        model = question.model or self.model
        if model not in self.prices:
            raise ModelsClosed("The model that is wanted has no price, so it is not asked.")
        request = self.dialect.request(question, model, self.key)
        body = json.dumps(request.body).encode("ascii")
        if len(body) > _REQUEST_BYTES:
            raise ModelRefused("The question is too large to be asked.")
        return request, body

    def _checked(self, question: ModelQuestion, answer: OutboundAnswer, most: ModelUsage) -> ModelAnswer:
        try:
            said = self.dialect.said(object_of(value_of(answer.body), "answer"))
        except BadAnswer as fault:
            raise ModelRefused(f"The answer is of another shape: {fault}", usage=most) from None
        usage = self._usage(said, question.model or self.model, most)
        if said.refused is not None:
            raise ModelRefused(said.refused[:_REASON], usage=usage)
        if faults := self.schemas.faults(question.schema, said.value, "answer"):
            reason = f"The answer is of another shape: {faults[0].field}: {faults[0].detail}"
            raise ModelRefused(reason[:_REASON], usage=usage)
        return ModelAnswer(said.value, usage)

    def _usage(self, said: Said, model: str, most: ModelUsage) -> ModelUsage:
        """By the provider's count; where it does not tell, the most that it can have been."""
        read = most.input_tokens if said.input_tokens is None else said.input_tokens
        written = most.output_tokens if said.output_tokens is None else said.output_tokens
        counted = self.prices[model].usage(model, read, written)
        return ModelUsage(_name(said.model) or model, read, written, counted.cost_micros)


def _name(given: str | None) -> str | None:
    """What the provider calls the model that answered, if that can be kept."""
    return given if given and len(given) <= 100 and given.isprintable() else None


def _refuse(answer: OutboundAnswer) -> None:
    """Raise what an answer of another status than 200 means. What it says is not repeated: providers quote keys in it."""
    status = answer.status
    if status == 200:
        return
    if status in _LATER or status >= 500:
        raise ModelLater(f"The provider answered {status}.", after=_after(answer.headers.get("Retry-After")))
    if status in _CLOSED or 300 <= status < 400:
        raise ModelsClosed(
            f"The provider lets nobody in ({status}): look at the key, the account and the model's name."
        )
    raise ModelRefused(f"The provider refused the question ({status}{_kind(answer.body)}).")


def _kind(body: bytes) -> str:
    """The error's type, which is a word of the API's own."""
    try:
        error: Any = object_of(value_of(body), "answer").get("error")
    except BadAnswer:
        return ""
    kind = error.get("type") if isinstance(error, Mapping) else None
    return f", {kind}" if isinstance(kind, str) and len(kind) <= 40 and kind.isidentifier() and kind.isascii() else ""


def _after(text: str | None) -> timedelta | None:
    """How long Retry-After asks to wait: seconds or a date, a day at most; None where it cannot be read."""
    given = (text or "").strip()
    if given.isascii() and given.isdigit():
        return min(_LONGEST, timedelta(seconds=int(given[:9])))
    try:
        until = parsedate_to_datetime(given)
    except (ValueError, TypeError, IndexError):
        return None
    wait = until.replace(tzinfo=until.tzinfo or UTC) - now()
    return min(_LONGEST, max(timedelta(), wait))
