"""Language models on the imitated providers of tests/support/providers.py."""

from collections.abc import Mapping

from adapters.pydantic_ai.generation import PydanticModels
from adapters.pydantic_ai.pricing import TokenPrice
from adapters.pydantic_ai.providers import ModelServer, ProviderLimits
from entrypoints.operations.validation import JsonSchemaValidator
from tests.support.providers import KEY, Provider

PRICES = {"small-1": TokenPrice(250_000, 2_000_000)}


def create_models(
    provider: Provider,
    seconds: float = 10.0,
    *,
    body_bytes: int = 64 * 1024,
    prices: Mapping[str, TokenPrice] = PRICES,
    key: str | None = KEY,
    url: str | None = None,
    routes: Mapping[str, str] | None = None,
) -> PydanticModels:
    """Return the models of a provider, by default `small-1`, with limits of time and size."""
    limits = ProviderLimits(seconds, seconds, 1.0, body_bytes, 16 * body_bytes)
    server = ModelServer(provider.api, url or provider.url, key, "Joinery/1", limits)
    return PydanticModels(server, JsonSchemaValidator(), "small-1", prices, routes or {})
