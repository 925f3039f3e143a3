"""Lists of tools that were answered before: made once for all who ask the same way, since each takes milliseconds."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from entrypoints.http.exchange import HeaderList, Response
from entrypoints.mcp.arguments import encode
from entrypoints.mcp.calls import Message

METHOD: Final = "tools/list"
MOST: Final = 32
LONGEST: Final = 4096
"""Bytes of what is asked; clients say who they are, and little else."""
_ASKED_BY: Final = (b"accept", b"content-type", b"mcp-")
"""Headers, by their beginnings, that the answer depends on."""


class _Answer(msgspec.Struct):
    result: msgspec.Raw = msgspec.Raw()


class Remembered:
    """Answers by all that they depend on; the id alone is each message's own."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, tuple[HeaderList, bytes]] = OrderedDict()

    @staticmethod
    def key(message: Message, headers: Iterable[tuple[bytes, bytes]], offered: Iterable[str]) -> bytes | None:
        """What the answer depends on; None for what is not remembered."""
        if message.value.get("method") != METHOD or "id" not in message.value:
            return None
        asked = {name: value for name, value in message.value.items() if name != "id"}
        told = [[name.decode(), value.decode("latin-1")] for name, value in headers if name.startswith(_ASKED_BY)]
        made = encode([asked, told, list(offered)])
        return made if len(message.raw) <= LONGEST else None

    def find(self, key: bytes | None, message: Mapping[str, Any]) -> Response | None:
        """The answer under that key, for this message."""
        known = self._known.get(key) if key is not None else None
        if known is None or key is None:
            return None
        self._known.move_to_end(key)
        headers, result = known
        return Response(200, list(headers), b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (encode(message["id"]), result))

    def keep(self, key: bytes | None, response: Response) -> None:
        """Remember a good answer."""
        if key is None or response.status != 200:
            return
        result = bytes(msgspec.json.decode(response.body, type=_Answer).result)
        if result:
            self._known[key] = (list(response.headers), result)
            if len(self._known) > MOST:
                self._known.popitem(last=False)
