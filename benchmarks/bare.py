"""The floor of reading: a bare ASGI app that selects the very bytes and splices them, on the same server software."""

import asyncio
import os
import sys
from typing import Any

import psycopg
from hypercorn.asyncio import serve

from entrypoints.http.connections import hypercorn_config

PAGE = (
    "SELECT product, body FROM product_documents WHERE org = %s AND livemode AND view = 'own' "
    "ORDER BY product DESC LIMIT 21"
)
CHANGES = "SELECT position, body FROM events WHERE org = %s AND livemode AND position > 0 ORDER BY position LIMIT 1000"
ONE = "SELECT body FROM product_documents WHERE org = %s AND livemode AND view = 'own' AND product = %s"


class Bare:
    """Eight kept connections, taken last in, first out; no checks of any kind."""

    def __init__(self, url: str, org: str) -> None:
        self._url, self._org = url, org
        self._idle: list[psycopg.AsyncCursor[Any]] = []

    async def _cursor(self) -> psycopg.AsyncCursor[Any]:
        if self._idle:
            return self._idle.pop()
        connection = await psycopg.AsyncConnection.connect(self._url, autocommit=True)
        connection.prepare_threshold = 3
        return connection.cursor(binary=True)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """GET /v1/products, /v1/products/{id} and /v1/changes, a thousand events."""
        if scope["type"] == "lifespan":
            while True:
                message = await receive()
                await send({"type": message["type"] + ".complete"})
                if message["type"] == "lifespan.shutdown":
                    return
        cursor = await self._cursor()
        path = scope["path"]
        if path == "/v1/products":
            rows = await (await cursor.execute(PAGE, (self._org,))).fetchall()
            body = b",".join([row[1] for row in rows[:20]])
            content = b'{"object":"list","data":[' + body + b'],"has_more":true,"next_cursor":"x"}'
        elif path == "/v1/changes":
            rows = await (await cursor.execute(CHANGES, (self._org,))).fetchall()
            body = b",".join([row[1] for row in rows])
            content = b'{"object":"change_page","data":[' + body + b'],"next_cursor":"x","caught_up":false}'
        else:
            row = await (await cursor.execute(ONE, (self._org, path.rpartition("/")[2]))).fetchone()
            content = row[0] if row else b""
        self._idle.append(cursor)
        assert content
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": content, "more_body": False})


if __name__ == "__main__":
    app = Bare(os.environ["JOINERY_DATABASE_URL_SUPER"], sys.argv[1])
    asyncio.run(serve(app, hypercorn_config("127.0.0.1", int(sys.argv[2]))))
