"""Web servers of the two vendors on one local port: a manufacturer's files, a shop's product pages, and images."""

import csv
import io
import json
from hashlib import blake2b
from pathlib import Path

from aiohttp import web

HOST = "127.0.0.1"
ITEM_MASTER = "/lindgren-falk/item-master.csv"
STOCK_SHEET = "/lindgren-falk/stock.csv"
DINING_ROOM = "/lindgren-falk/dining-room.csv"
"""Path of the part of the item master that the manufacturer publishes itself: small, so that the demo starts quickly."""
DATA_FOLDER = Path(__file__).parent / "data"
IMAGE_URL_PLACEHOLDER = "https://images.vendor.example"
"""Start of the image URLs in the stored feeds; responses contain the URL of this web server instead."""
DEFAULT_LIMIT = 30
MAX_LIMIT = 250


def create_application() -> web.Application:
    """Create the web application that serves both vendors' feeds and the images."""
    app = web.Application()
    app.router.add_get(ITEM_MASTER, _serve_item_master)
    app.router.add_get(STOCK_SHEET, _serve_stock_sheet)
    app.router.add_get(DINING_ROOM, _serve_dining_room)
    app.router.add_get("/products.json", _serve_products)
    app.router.add_get("/collections/all/products.json", _serve_products)
    app.router.add_static("/pictures", DATA_FOLDER / "pictures")
    return app


async def start_server(port: int) -> web.AppRunner:
    """Start the web server of the feeds; return the runner, whose `cleanup` stops the server.

    Raises:
        OSError: The port is in use.
    """
    runner = web.AppRunner(create_application(), access_log=None, handle_signals=False)
    await runner.setup()
    try:
        await web.TCPSite(runner, HOST, port).start()
    except OSError:
        await runner.cleanup()
        raise
    return runner


def read_feed(name: str) -> bytes:
    """Return the content of the feed file with the name."""
    return (DATA_FOLDER / name).read_bytes()


def read_dining_room() -> bytes:
    """Return the title, the headers and the dining room's rows of the item master."""
    rows = list(csv.reader(io.StringIO(read_feed("item-master.csv").decode("utf-8-sig"), newline="")))
    selected = io.StringIO(newline="")
    csv.writer(selected).writerows([*rows[:5], *(row for row in rows[5:] if "Dining Room" in row)])
    return selected.getvalue().encode("utf-8-sig")


async def _serve_item_master(request: web.Request) -> web.Response:
    return _respond(request, read_feed("item-master.csv"), "text/csv")


async def _serve_stock_sheet(request: web.Request) -> web.Response:
    return _respond(request, read_feed("stock.csv"), "text/csv")


async def _serve_dining_room(request: web.Request) -> web.Response:
    return _respond(request, read_dining_room(), "text/csv")


async def _serve_products(request: web.Request) -> web.Response:
    limit = min(_parse_positive(request, "limit", DEFAULT_LIMIT), MAX_LIMIT)
    end = _parse_positive(request, "page", 1) * limit
    products = json.loads(read_feed("products.json"))[end - limit : end]
    return _respond(request, json.dumps({"products": products}, ensure_ascii=False).encode(), "application/json")


def _parse_positive(request: web.Request, name: str, default: int) -> int:
    """Return a query parameter as an integer of at least 1 (0 becomes 1); `default` if the parameter is not digits."""
    text = request.query.get(name, "")
    return max(1, int(text)) if text.isascii() and text.isdigit() else default


def _respond(request: web.Request, feed: bytes, content_type: str) -> web.Response:
    """Return a response with the feed, whose image URLs lead to this server; 304 if the client already has this version."""
    port = request.get_extra_info("sockname")[1]
    body = feed.replace(IMAGE_URL_PLACEHOLDER.encode(), f"http://{HOST}:{port}".encode())
    etag = blake2b(body, digest_size=12).hexdigest()
    is_current = any(tag.value == etag for tag in request.if_none_match or ())
    response = (
        web.Response(status=304) if is_current else web.Response(body=body, content_type=content_type, charset="utf-8")
    )
    response.etag = etag
    return response
