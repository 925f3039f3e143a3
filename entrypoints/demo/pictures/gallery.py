"""Hands out pictures by their paths: drawn one after the other beside the event loop, the last ones kept."""

import asyncio
from collections import OrderedDict
from typing import Final

CONTENT_TYPE: Final = "image/jpeg"
KEPT: Final = 64
"""Pictures in memory, of some 20 KB each."""
PAUSE: Final = 0.05
"""Seconds from one drawing to the next: whoever fetches all of them leaves the machine to those who look at the demo."""


class Gallery:
    """All pictures of both vendors. `pause` in seconds."""

    def __init__(self, pause: float = PAUSE) -> None:
        self._pause = pause
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._turn = asyncio.Lock()

    async def picture(self, path: str) -> bytes | None:
        """The picture's JPEG; None when no feed names it."""
        async with self._turn:
            if path in self._kept:
                self._kept.move_to_end(path)
                return self._kept[path]
            drawn = await asyncio.to_thread(_drawn, path)
            if drawn is None:
                return None
            self._kept[path] = drawn
            if len(self._kept) > KEPT:
                self._kept.popitem(last=False)
            await asyncio.sleep(self._pause)
            return drawn


def _drawn(path: str) -> bytes | None:
    from entrypoints.demo.pictures.album import album  # noqa: PLC0415  the feeds are ready without the furniture's forms
    from entrypoints.demo.pictures.drawing import picture  # noqa: PLC0415  nor is Pillow loaded before a picture is asked for

    subject = album().get(path)
    return None if subject is None else picture(subject)
