"""The two vendors' web servers, on one port of this machine: a maker's files, a shop's pages of products, pictures of both."""

import json
from hashlib import blake2b
from typing import Final

from aiohttp import web

from entrypoints.demo.lindgren_sheets import item_master, stock_sheet
from entrypoints.demo.pictures import names
from entrypoints.demo.pictures.gallery import CONTENT_TYPE, Gallery
from entrypoints.demo.quillmere_products import products

HOST: Final = "127.0.0.1"
ITEM_MASTER: Final = "/lindgren-falk/item-master.csv"
STOCK_SHEET: Final = "/lindgren-falk/stock.csv"
USUAL_PAGE: Final = 30
LARGEST_PAGE: Final = 250
FARTHEST: Final = 25_000
_GALLERY: Final = web.AppKey("gallery", Gallery)


def application(gallery: Gallery | None = None) -> web.Application:
    """Both vendors' addresses; pictures as the usual gallery hands them out unless another is given."""
    app = web.Application()
    app[_GALLERY] = gallery or Gallery()
    app.router.add_get(ITEM_MASTER, _item_master)
    app.router.add_get(STOCK_SHEET, _stock_sheet)
    app.router.add_get("/products.json", _products)
    app.router.add_get("/collections/all/products.json", _products)
    for folder in (names.LINDGREN, names.QUILLMERE):
        app.router.add_get(folder + "/{name}", _picture)
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
    return _answer(request, _at_home(request, item_master()), "text/csv")


async def _stock_sheet(request: web.Request) -> web.Response:
    return _answer(request, stock_sheet(), "text/csv")


async def _products(request: web.Request) -> web.Response:
    limit = min(_number(request, "limit", USUAL_PAGE), LARGEST_PAGE)
    page = _number(request, "page", 1)
    if page * limit > FARTHEST:
        said = {"errors": f"Page * Limit exceeds the {FARTHEST} limit."}
        return web.json_response(said, status=400)
    shown = products()[(page - 1) * limit : page * limit]
    body = json.dumps({"products": shown}, ensure_ascii=False).encode()
    return _answer(request, _at_home(request, body), "application/json")


async def _picture(request: web.Request) -> web.Response:
    drawn = await request.app[_GALLERY].picture(request.path)
    if drawn is None:
        raise web.HTTPNotFound
    return _answer(request, drawn, CONTENT_TYPE)


def _at_home(request: web.Request, feed: bytes) -> bytes:
    """The feed with its pictures at this very server, by the port that was reached and not by what the asker calls it."""
    port = request.get_extra_info("sockname")[1]
    return feed.replace(names.HOME.encode(), f"http://{HOST}:{port}".encode())


def _number(request: web.Request, name: str, default: int) -> int:
    text = request.query.get(name, "")
    return max(1, int(text)) if text.isascii() and text.isdigit() and len(text) < 9 else default


def _answer(request: web.Request, body: bytes, content_type: str) -> web.Response:
    """The body with its validator; 304 when the asker has it."""
    etag = blake2b(body, digest_size=12).hexdigest()
    held = request.if_none_match or ()
    if any(known.value in (etag, "*") for known in held):
        return web.Response(status=304, headers={"ETag": f'"{etag}"'})
    charset = None if content_type == CONTENT_TYPE else "utf-8"
    response = web.Response(body=body, content_type=content_type, charset=charset)
    response.etag = etag
    return response
