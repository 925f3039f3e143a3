"""The demo's two vendors: what their sources are called, and where and how they are read."""

from dataclasses import dataclass, field
from typing import Any, Final

from entrypoints.demo.feeds import HOST, ITEM_MASTER, STOCK_SHEET


@dataclass(frozen=True, slots=True)
class Vendor:
    """One vendor. `path` is where its feed is; `stock_path` its stock sheet, if it sends one apart."""

    name: str
    path: str
    settings: dict[str, Any] = field(default_factory=dict)
    stock_path: str | None = None
    licence_basis: str = "vendor_agreement"

    def url(self, port: int) -> str:
        """Where the feed is while it is served on `port`."""
        return f"http://{HOST}:{port}{self.path}"

    def config(self, port: int) -> dict[str, Any]:
        """The source's settings."""
        config = {"url": self.url(port), "currency": "usd", **self.settings}
        return config if self.stock_path is None else config | {"stock_url": f"http://{HOST}:{port}{self.stock_path}"}


LINDGREN: Final = Vendor("Lindgren & Falk", ITEM_MASTER, {"format": "csv", "role": "supplier"}, STOCK_SHEET)
QUILLMERE: Final = Vendor(
    "Quillmere Home", "/", {"platform": "shopify", "role": "retailer"}, licence_basis="public_data"
)
VENDORS: Final = (LINDGREN, QUILLMERE)
