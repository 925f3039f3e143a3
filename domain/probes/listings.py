"""The lists of products that shop platforms publish for machines: where they are, and what their answers say."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeGuard

from domain.probes.facts import Response
from domain.probes.model import Platform

MOST_FIELDS: Final = 100
_LOOKED_AT: Final = 50
_USUAL: Final = ("products", "items", "data", "results", "records", "value", "content", "entries")


@dataclass(frozen=True, slots=True)
class Listing:
    """Products of an answer, and of all together where it is told; the fields that any of them has a value in."""

    products: int | None = None
    total: int | None = None
    fields: tuple[str, ...] = ()
    currency: str | None = None


NOTHING: Final = Listing()


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a platform lists its products; `signal` is what it is called as evidence."""

    platform: Platform
    path: str
    query: str

    @property
    def signal(self) -> str:
        """The path, as evidence names it."""
        return self.path


ENDPOINTS: Final = (
    Endpoint(Platform.SHOPIFY, "/products.json", "limit=25"),
    Endpoint(Platform.WOOCOMMERCE, "/wp-json/wc/store/v1/products", "per_page=25"),
)
SHOP: Final = "/meta.json"
"""Where a Shopify shop tells its currency and how many products it has published."""


def listing(endpoint: Endpoint, response: Response, value: Any) -> Listing | None:
    """What the platform's list says; None for an answer that is none of the platform's."""
    if not response.is_good:
        return None
    if endpoint.platform == Platform.SHOPIFY:
        value = value.get("products") if isinstance(value, dict) else None
        return _shopify(value) if _all_have(value, "variants") else None
    return _woocommerce(response, value) if _all_have(value, "prices") else None


def _all_have(products: Any, name: str) -> TypeGuard[list[Any]]:
    return isinstance(products, list) and all(isinstance(one, dict) and name in one for one in products)


def _shopify(products: list[Any]) -> Listing:
    total = len(products) if len(products) < 25 else None
    return Listing(len(products), total, fields_of(products))


def _woocommerce(response: Response, products: list[Any]) -> Listing:
    told = response.headers.get("x-wp-total", "")
    total = int(told) if told.isdigit() and told.isascii() and len(told) < 10 else None
    currencies = {_currency(one.get("prices")) for one in products[:_LOOKED_AT]} - {None}
    currency = currencies.pop() if len(currencies) == 1 else None
    return Listing(len(products), total, fields_of(products), currency)


def _currency(prices: Any) -> str | None:
    code = prices.get("currency_code") if isinstance(prices, dict) else None
    return code.lower() if isinstance(code, str) and len(code) == 3 else None


def shop(value: Any) -> Listing:
    """What a Shopify shop's /meta.json says: the number of its products, and its currency."""
    told = value if isinstance(value, dict) else {}
    total, currency = told.get("published_products_count"), told.get("currency")
    return Listing(
        total=total if isinstance(total, int) and not isinstance(total, bool) and total >= 0 else None,
        currency=currency.lower() if isinstance(currency, str) and len(currency) == 3 else None,
    )


def records_in(value: Any) -> list[Mapping[str, Any]]:
    """The records of a JSON document: those of its list, or of the list under a usual name."""
    if isinstance(value, dict):
        value = next((value[name] for name in _USUAL if isinstance(value.get(name), list)), None)
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def fields_of(products: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Paths that any of the products has a value at, two levels deep, in the order in which they come."""
    found: dict[str, None] = {}
    for product in products[:_LOOKED_AT]:
        for path in _paths(product):
            if len(found) == MOST_FIELDS:
                return tuple(found)
            found[path] = None
    return tuple(found)


def _paths(product: Mapping[str, Any]) -> Iterator[str]:
    for name, value in list(product.items())[:MOST_FIELDS]:
        if not name.strip():
            continue
        inner = value[0] if isinstance(value, list) and value and isinstance(value[0], dict) else value
        if isinstance(inner, dict):
            for part, below in list(inner.items())[:MOST_FIELDS]:
                if below not in (None, "", [], {}):
                    yield f"{name}.{part}"[:60]
        elif value not in (None, "", [], {}):
            yield name[:60]
