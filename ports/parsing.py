"""Parsing of hostile input where it can be bounded and ended."""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

R = TypeVar("R")


class ParserEnded(Exception):
    """The input made its parser take more time or memory than it may, or crash."""


class ParserFailed(Exception):
    """The parser could not do its work for a reason that is not the input's, such as a full disk."""


class ParserRunner(Protocol):
    """Runs a function over hostile input; `asyncio.to_thread` is one, which bounds nothing."""

    async def __call__(self, function: Callable[..., R], /, *args: Any) -> R:
        """Return the function's result.

        Arguments and result are plain values or dataclasses, as the function's annotations state; an argument may be a
        function, which is called in the calling process, in a thread.

        Raises:
            ParserEnded: The function was ended.
            ParserFailed: The function could not be run.

        """
        ...
