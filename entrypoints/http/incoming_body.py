"""The body of one request as it arrives: taken only when somebody asks, no slower than its pace, and left behind safely."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, Final

from domain.kernel.concurrency import ConcurrencyLimit
from domain.kernel.errors import InvalidRequest, PayloadTooLarge

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

LINGER_SECONDS: Final = 1.0
LINGER_BYTES: Final = 8 << 20
"""How long, and how much, is still taken of a body that was refused, so that its sender gets to read the answer."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How slowly a body may come: at least `least` bytes a second on the average.

    It has `grace` seconds to begin with, and is never silent for `silence` seconds.
    """

    grace: float
    silence: float
    least: int

    def patience(self, waited: float, received: int) -> float:
        """Seconds that the next piece may take, after so many seconds of waiting for so many bytes."""
        return min(self.silence, self.grace + received / self.least - waited)


JSON_PACE: Final = Pace(grace=10.0, silence=10.0, least=8 * 1024)
"""Of JSON bodies: 1 MiB takes 138 s at the most."""
FILE_PACE: Final = Pace(grace=30.0, silence=30.0, least=4 * 1024)
"""Of files: a line of 32 kbit/s is enough for any size."""


class HeldBodies:
    """The bodies of the requests in hand: how many are still arriving, and the bytes of all."""

    def __init__(self) -> None:
        self.arriving = ConcurrencyLimit(1024, 64, noun="bodies that are still arriving")
        self.bytes = ConcurrencyLimit(256 << 20, 64 << 20, noun="bytes of bodies in hand")


class TooSlow(Exception):
    """The sender fell behind its pace."""


class Gone(ConnectionError):
    """The sender broke off."""


def too_large(limit: int) -> str:
    """What to say of a body over the limit."""
    return f"The body has more than {limit} bytes, the most that are taken here. Send it in parts."


class IncomingBody:
    """One request's end of the ASGI connection. Nothing is taken from it before `chunks` is."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._ended = asyncio.Event()
        self._hopeless = False

    async def chunks(self, pace: Pace) -> AsyncIterator[bytes]:
        """Its pieces. The time that the caller takes is not the sender's. Raises TooSlow or Gone."""
        loop, waited, received = asyncio.get_running_loop(), 0.0, 0
        while not self._ended.is_set():
            asked = loop.time()
            try:
                async with asyncio.timeout(max(0.0, pace.patience(waited, received))):
                    message = await self._next()
            except TimeoutError:
                self._hopeless = True
                raise TooSlow from None
            waited += loop.time() - asked
            if piece := message.get("body"):
                received += len(piece)
                yield piece

    async def read(self, limit: int) -> bytes:
        """The whole body. Raises PayloadTooLarge, and InvalidRequest when it comes too slowly."""
        received = bytearray()
        try:
            async for piece in self.chunks(JSON_PACE):
                received += piece
                if len(received) > limit:
                    raise PayloadTooLarge(too_large(limit))
        except TooSlow:
            raise InvalidRequest(
                f"The body came too slowly: it may pause for {JSON_PACE.silence:g} s, and must come with at least "
                f"{JSON_PACE.least} bytes a second. Send the request again."
            ) from None
        except Gone:
            raise InvalidRequest("The body broke off before its end; send the request again.") from None
        return bytes(received)

    async def receive(self) -> Message:
        """What a framework is told that may not take the body itself: only that the client is gone, behind the body."""
        await self._ended.wait()
        return await self._receive()

    def answering(self, send: Send) -> Send:
        """`send` for an answer that may be complete before the body is."""

        async def answer(message: Message) -> None:
            if self._ended.is_set() or message["type"] != "http.response.body" or message.get("more_body"):
                await send(message)
            else:
                await self._finish(message, send)

        return answer

    async def gone(self) -> None:
        """Wait for the client to leave; of the body nothing is kept."""
        await self._drain()

    async def _next(self) -> Message:
        message = await self._receive()
        if message["type"] != "http.request":
            self._ended.set()
            raise Gone("The sender broke off.")
        if not message.get("more_body"):
            self._ended.set()
        return message

    async def _finish(self, last: Message, send: Send) -> None:
        """End the answer to a request whose body nobody took.

        The sender may still be at it, and reads the answer only afterwards: so what comes is thrown away for a moment.
        A server that holds a full queue of it could not end the connection either, so somebody takes until it has.
        """
        await send({**last, "more_body": True})
        if not self._hopeless:
            await self._linger()
        draining = asyncio.create_task(self._drain())
        try:
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            draining.cancel()
            await asyncio.gather(draining, return_exceptions=True)

    async def _linger(self) -> None:
        thrown = 0
        try:
            async with asyncio.timeout(LINGER_SECONDS):
                while not self._ended.is_set() and thrown < LINGER_BYTES:
                    thrown += len((await self._next()).get("body", b""))
        except (TimeoutError, Gone):
            return

    async def _drain(self) -> None:
        while (message := await self._receive())["type"] == "http.request":
            if not message.get("more_body"):
                self._ended.set()
        self._ended.set()
