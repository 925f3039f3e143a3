"""HTTP client for providers of language models, which bounds responses before the provider's SDK reads them."""

import ssl
from collections.abc import AsyncIterator, Mapping

import httpx2

from adapters.pydantic_ai.providers import ModelServer, ProviderLimits

_SDK_HEADERS = frozenset({"accept", "content-type", "content-length", "host", "anthropic-version", "anthropic-beta"})
"""Headers of the SDKs that are sent. The others describe this machine, or come from environment variables."""


class UnusableResponse(httpx2.TransportError):
    """Response that is redirected, compressed or too large, or has another status than 200.

    Attributes:
        status: The status of the response.
    """

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def create_http_client(server: ModelServer, credential: Mapping[str, str]) -> httpx2.AsyncClient:
    """Create a client that sends the credential, a header, with every request. It uses no proxies and follows no redirects."""
    limits = server.limits
    transport = _ProviderTransport(
        {**credential, "User-Agent": server.user_agent, "Accept-Encoding": "identity"}, limits
    )
    timeout = httpx2.Timeout(limits.response_seconds, connect=limits.connect_seconds)
    return httpx2.AsyncClient(transport=transport, timeout=timeout, trust_env=False, follow_redirects=False)


class _ProviderTransport(httpx2.AsyncBaseTransport):
    """Transport that sets the headers of requests, and raises UnusableResponse."""

    def __init__(self, headers: Mapping[str, str], limits: ProviderLimits) -> None:
        self._headers, self._limits = headers, limits
        self._transport = httpx2.AsyncHTTPTransport(verify=ssl.create_default_context(), trust_env=False)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        kept = {name: value for name, value in request.headers.items() if name in _SDK_HEADERS}
        request.headers = httpx2.Headers({**kept, **self._headers})
        response = await self._transport.handle_async_request(request)
        status, coding = response.status_code, response.headers.pop("Content-Encoding", "identity")
        is_error, is_stream = status >= 400, response.headers.get("Content-Type", "").startswith("text/event-stream")
        if not is_error and (status != 200 or coding != "identity"):
            await response.aclose()
            reason = "is compressed" if status == 200 else f"has the status {status}"
            raise UnusableResponse(f"The provider's response {reason}.", status)
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        limit = self._limits.stream_bytes if is_stream else self._limits.body_bytes
        response.stream = _BoundedStream(response.stream, limit, is_error=is_error)
        return response

    async def aclose(self) -> None:
        await self._transport.aclose()


class _BoundedStream(httpx2.AsyncByteStream):
    """Body of a response. After the maximum of bytes, that of an error ends, and any other raises UnusableResponse."""

    def __init__(self, stream: httpx2.AsyncByteStream, max_bytes: int, *, is_error: bool) -> None:
        self._stream, self._max_bytes, self._is_error = stream, max_bytes, is_error

    async def __aiter__(self) -> AsyncIterator[bytes]:
        received = 0
        async for chunk in self._stream:
            received += len(chunk)
            if received > self._max_bytes:
                if self._is_error:
                    return
                raise UnusableResponse("The provider's response is too large.", 200)
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
