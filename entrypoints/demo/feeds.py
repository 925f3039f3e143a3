"""The two vendors' web servers, on one port of this machine: a maker's files and a shop's pages of products."""

import json
from hashlib import blake2b
from typing import Final

from aiohttp import web

from entrypoints.demo.lindgren_sheets import item_master, stock_sheet
from entrypoints.demo.quillmere_products import products

HOST: Final = "127.0.0.1"
ITEM_MASTER: Final = "/lindgren-falk/item-master.csv"
STOCK_SHEET: Final = "/lindgren-falk/stock.csv"
USUAL_PAGE: Final = 30
LARGEST_PAGE: Final = 250
FARTHEST: Final = 25_000


def application() -> web.Application:
    """Both vendors' addresses."""
    app = web.Application()
    app.router.add_get(ITEM_MASTER, _item_master)
    app.router.add_get(STOCK_SHEET, _stock_sheet)
    app.router.add_get("/products.json", _products)
    app.router.add_get("/collections/all/products.json", _products)
    return app


async def serve(port: int) -> web.AppRunner:
    """Serve until the runner is cleaned up. Raises OSError when the port is taken."""
    runner = web.AppRunner(application(), access_log=None, handle_signals=False)
    await runner.setup()
    try:
        await web.TCPSite(runner, HOST, port).start()
    except OSError:
        await runner.cleanup()
        raise
    return runner


async def _item_master(request: web.Request) -> web.Response:
    return _answer(request, item_master(), "text/csv")


async def _stock_sheet(request: web.Request) -> web.Response:
    return _answer(request, stock_sheet(), "text/csv")


async def _products(request: web.Request) -> web.Response:
    limit = min(_number(request, "limit", USUAL_PAGE), LARGEST_PAGE)
    page = _number(request, "page", 1)
    if page * limit > FARTHEST:
        said = {"errors": f"Page * Limit exceeds the {FARTHEST} limit."}
        return web.json_response(said, status=400)
    shown = products()[(page - 1) * limit : page * limit]
    return _answer(request, json.dumps({"products": shown}, ensure_ascii=False).encode(), "application/json")


def _number(request: web.Request, name: str, default: int) -> int:
    text = request.query.get(name, "")
    return max(1, int(text)) if text.isascii() and text.isdigit() and len(text) < 9 else default


def _answer(request: web.Request, body: bytes, content_type: str) -> web.Response:
    """The body with its validator; 304 when the asker has it."""
    etag = blake2b(body, digest_size=12).hexdigest()
    held = request.if_none_match or ()
    if any(known.value in (etag, "*") for known in held):
        return web.Response(status=304, headers={"ETag": f'"{etag}"'})
    response = web.Response(body=body, content_type=content_type, charset="utf-8")
    response.etag = etag
    return response
