"""Vendors' files, small and regular, and a server of feeds that records its requests."""

import csv
import io
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.flows.service_processes import FEEDS

HEADERS = ("Handle", "Title", "Brand", "SKU", "Color", "Price", "Cost", "Qty", "Category")
BRANDS = ("Lindgren", "Fermob", "West  Elm")
WORDS = ("Oak", "Walnut", "Ash", "Teak")


def build_csv(headers: tuple[str, ...], rows: Iterator[tuple[object, ...]] | list[tuple[object, ...]]) -> bytes:
    """Return a CSV file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(headers)
    writer.writerows(rows)
    return text.getvalue().encode()


def build_catalogue(products: int, variants: int = 2, *, first: int = 0, price: int = 100, quantity: int = 7) -> bytes:
    """Return an item master with products from number `first` on, with `variants` variants each."""
    return build_csv(HEADERS, _rows(products, variants, first, price, quantity))


def _rows(products: int, variants: int, first: int, price: int, quantity: int) -> Iterator[tuple[object, ...]]:
    for number in range(first, first + products):
        word = WORDS[number % len(WORDS)]
        for variant in range(variants):
            yield (
                f"item-{number}", f"{word} chair {number}", BRANDS[number % len(BRANDS)], f"SKU-{number:04d}-{variant}",
                ("Natural", "Black", "White")[variant % 3], f"{price + number}.50", f"{price // 2 + number}",
                quantity, "Living Room > Chairs",
            )  # fmt: skip


def build_stock_sheet(products: int, variants: int = 2, *, quantity: int = 3) -> bytes:
    """Return a stock sheet for the catalogue of that size."""
    rows = [(f"SKU-{number:04d}-{variant}", quantity) for number in range(products) for variant in range(variants)]
    return build_csv(("SKU", "Available Quantity"), list(rows))


def build_record(
    name: str, *, title: str = "Oak chair", price: object = "10.50", quantity: int = 4, key: bool = False
) -> dict[str, Any]:
    """Return a record to push: a product with one variant and one offer, which has the key `key` if given."""
    offer: dict[str, Any] = {"price": {"amount": price, "currency": "usd"}, "quantity": quantity}
    if key:
        offer["external_id"] = f"{name}@main"
    variant = {"external_id": f"{name}-1", "sku": f"{name}-1", "offers": [offer]}
    return {"product": {"external_id": name, "title": title, "brand": "Lindgren"}, "variants": [variant]}


@dataclass
class FeedRequest:
    """A request as received by the feed server."""

    path: str
    query: dict[str, list[str]]
    headers: Mapping[str, str]


Reply = tuple[int, dict[str, str], bytes]
Handler = Callable[[FeedRequest], Reply]
Raw = Callable[[BaseHTTPRequestHandler], None]


@dataclass
class FeedServer:
    """Server at http://127.0.0.2:port; `pages` are responses by path, `raw` are responses that violate HTTP."""

    port: int = 0
    pages: dict[str, Handler] = field(default_factory=dict)
    raw: dict[str, Raw] = field(default_factory=dict)
    requests: list[FeedRequest] = field(default_factory=list)

    def url(self, path: str) -> str:
        """Return the URL of the path."""
        return f"http://{FEEDS}:{self.port}{path}"

    def serve(self, path: str, content: bytes, *, etag: str | None = None, content_type: str = "text/csv") -> str:
        """Serve the content at the path, conditionally if there is an ETag; return the URL."""

        def answer(request: FeedRequest) -> Reply:
            if etag and request.headers.get("If-None-Match") == etag:
                return 304, {"ETag": etag}, b""
            return 200, {"Content-Type": content_type} | ({"ETag": etag} if etag else {}), content

        self.pages[path] = answer
        return self.url(path)

    def fail(self, path: str, status: int, **headers: str) -> str:
        """Respond with the status at the path; return the URL."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.pages[path] = lambda _: (status, named, b"")
        return self.url(path)

    def count(self, path: str) -> int:
        """Return the number of requests of the path."""
        return sum(1 for request in self.requests if request.path == path)


@contextmanager
def serve_feeds() -> Iterator[FeedServer]:
    """Run a feed server in threads of this process."""
    feeds = FeedServer()

    class Answers(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            request = FeedRequest(parts.path, parse_qs(parts.query), dict(self.headers.items()))
            feeds.requests.append(request)
            if parts.path in feeds.raw:
                self.close_connection = True
                feeds.raw[parts.path](self)
                return
            status, headers, body = feeds.pages.get(parts.path, _nothing)(request)
            self.send_response(status)
            for name, value in ({"Content-Length": str(len(body))} | headers).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer((FEEDS, 0), Answers)
    server.daemon_threads = True
    feeds.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield feeds
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


def _nothing(_: FeedRequest) -> Reply:
    return 404, {}, b""
