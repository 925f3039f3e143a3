"""Minimal ASGI application that only selects and joins stored bytes, as the lower limit for the cost of reading."""

import asyncio
import os
import sys
from typing import Any

import psycopg
from hypercorn.asyncio import serve

from entrypoints.http.connections import create_hypercorn_config

PAGE_SQL = (
    "SELECT product, body FROM product_documents WHERE org = %s AND livemode AND view = 'own' "
    "ORDER BY product DESC LIMIT 21"
)
CHANGES_SQL = (
    "SELECT position, body FROM events WHERE org = %s AND livemode AND position > 0 ORDER BY position LIMIT 1000"
)
PRODUCT_SQL = "SELECT body FROM product_documents WHERE org = %s AND livemode AND view = 'own' AND product = %s"


class MinimalApp:
    """ASGI application without authentication or checks, with a last-in, first-out pool of database cursors."""

    def __init__(self, url: str, org: str) -> None:
        self._url, self._org = url, org
        self._idle: list[psycopg.AsyncCursor[Any]] = []

    async def _take_cursor(self) -> psycopg.AsyncCursor[Any]:
        if self._idle:
            return self._idle.pop()
        connection = await psycopg.AsyncConnection.connect(self._url, autocommit=True)
        connection.prepare_threshold = 3
        return connection.cursor(binary=True)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer GET /v1/products, /v1/products/{id} and /v1/changes (1,000 events)."""
        if scope["type"] == "lifespan":
            while True:
                message = await receive()
                await send({"type": message["type"] + ".complete"})
                if message["type"] == "lifespan.shutdown":
                    return
        cursor = await self._take_cursor()
        path = scope["path"]
        if path == "/v1/products":
            rows = await (await cursor.execute(PAGE_SQL, (self._org,))).fetchall()
            body = b",".join([row[1] for row in rows[:20]])
            content = b'{"object":"list","data":[' + body + b'],"has_more":true,"next_cursor":"x"}'
        elif path == "/v1/changes":
            rows = await (await cursor.execute(CHANGES_SQL, (self._org,))).fetchall()
            body = b",".join([row[1] for row in rows])
            content = b'{"object":"change_page","data":[' + body + b'],"next_cursor":"x","caught_up":false}'
        else:
            row = await (await cursor.execute(PRODUCT_SQL, (self._org, path.rpartition("/")[2]))).fetchone()
            content = row[0] if row else b""
        self._idle.append(cursor)
        assert content
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": content, "more_body": False})


if __name__ == "__main__":
    app = MinimalApp(os.environ["JOINERY_DATABASE_URL_SUPER"], sys.argv[1])
    asyncio.run(serve(app, create_hypercorn_config("127.0.0.1", int(sys.argv[2]))))
