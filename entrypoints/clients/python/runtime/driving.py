"""Takes the steps of the logic with httpx: one driver that blocks, and one for asyncio."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from typing import Any, Final

import httpx

from .file_pieces import awaited_pieces, pieces
from .steps import Answer, Emit, Load, NoResponse, Request, Save, Send, Sleep, Steps, T

_NOT_SENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)
_LONGEST_TIMEOUT: Final = 1e6
"""Seconds; systems refuse to wait for much longer, and who asks for it means for ever."""
_LOG: Final = logging.getLogger("joinery_client")
_WARNED: Final = 3
"""From so many tries on it is a warning that a call is tried again: a follower would else be silent for ever."""


def _answer(response: httpx.Response) -> Answer:
    return Answer(
        response.status_code, {name.lower(): value for name, value in response.headers.items()}, response.content
    )


def _no_response(error: httpx.RequestError) -> NoResponse:
    if isinstance(error, (httpx.UnsupportedProtocol, httpx.LocalProtocolError)):
        raise error  # a fault in the request itself, which no repetition mends
    return NoResponse(error, sent=not isinstance(error, _NOT_SENT))


def _tell(step: Sleep) -> None:
    if step.reason:
        level = logging.WARNING if step.tries >= _WARNED else logging.INFO
        _LOG.log(level, "%s; again in %.1f s", step.reason, step.seconds)


def _checked(timeout: float) -> float:
    if not timeout > 0:  # nor NaN
        raise ValueError("The timeout is a number of seconds above 0, or math.inf.")
    return timeout


def _patience(timeout: float, request: Request) -> httpx.Timeout:
    if timeout > _LONGEST_TIMEOUT:
        return httpx.Timeout(None)
    return httpx.Timeout(timeout, read=timeout + request.wait)


class Driver:
    """Takes steps one after the other, blocking."""

    def __init__(self, timeout: float, transport: httpx.BaseTransport | None) -> None:
        self._timeout = _checked(timeout)
        self._http = httpx.Client(transport=transport, follow_redirects=False)  # the key is for one host

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def run(self, steps: Steps[T]) -> T:
        """What the steps come to."""
        result: Any = None
        while True:
            try:
                step = steps.send(result)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]  # a StopIteration carries any value
            result = self._take(step)

    def iterate(self, steps: Steps[None]) -> Iterator[Any]:
        """Every value that the steps emit."""
        result: Any = None
        while True:
            try:
                step = steps.send(result)
            except StopIteration:
                return
            result = None if isinstance(step, Emit) else self._take(step)
            if isinstance(step, Emit):
                yield step.value

    def _take(self, step: Any) -> Any:
        if isinstance(step, Send):
            return self._send(step.request)
        if isinstance(step, Sleep):
            _tell(step)
            return time.sleep(step.seconds)
        if isinstance(step, Load):
            return step.store.load()
        if isinstance(step, Save):
            return step.store.save(step.cursor)
        raise TypeError(step)

    def _send(self, request: Request) -> Answer | NoResponse:
        try:
            if request.file is None:
                return self._exchange(request, request.content)
            with closing(pieces(request.file, request.size)) as content:
                return self._exchange(request, content)
        except httpx.RequestError as error:
            return _no_response(error)

    def _exchange(self, request: Request, content: Any) -> Answer:
        patience = _patience(self._timeout, request)
        headers = dict(request.headers)
        return _answer(
            self._http.request(request.method, request.url, headers=headers, content=content, timeout=patience)
        )


class AsyncDriver:
    """Takes steps one after the other, under asyncio."""

    def __init__(self, timeout: float, transport: httpx.AsyncBaseTransport | None) -> None:
        self._timeout = _checked(timeout)
        self._http = httpx.AsyncClient(transport=transport, follow_redirects=False)  # the key is for one host

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def run(self, steps: Steps[T]) -> T:
        """What the steps come to."""
        result: Any = None
        while True:
            try:
                step = steps.send(result)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]  # a StopIteration carries any value
            result = await self._take(step)

    async def iterate(self, steps: Steps[None]) -> AsyncIterator[Any]:
        """Every value that the steps emit."""
        result: Any = None
        while True:
            try:
                step = steps.send(result)
            except StopIteration:
                return
            result = None if isinstance(step, Emit) else await self._take(step)
            if isinstance(step, Emit):
                yield step.value

    async def _take(self, step: Any) -> Any:
        if isinstance(step, Send):
            return await self._send(step.request)
        if isinstance(step, Sleep):
            _tell(step)
            return await asyncio.sleep(step.seconds)
        if isinstance(step, Load):
            return await asyncio.to_thread(step.store.load)
        if isinstance(step, Save):
            return await asyncio.to_thread(step.store.save, step.cursor)
        raise TypeError(step)

    async def _send(self, request: Request) -> Answer | NoResponse:
        content = request.content if request.file is None else awaited_pieces(request.file, request.size)
        patience = _patience(self._timeout, request)
        headers = dict(request.headers)
        try:
            return _answer(
                await self._http.request(
                    request.method, request.url, headers=headers, content=content, timeout=patience
                )
            )
        except httpx.RequestError as error:
            return _no_response(error)
