"""Parsing of hostile input under limits of time and memory."""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

R = TypeVar("R")


class ParserEnded(Exception):
    """Termination of the parser: the input made it exceed its limits or crash."""


class ParserFailed(Exception):
    """Failure to run the parser for a reason other than its input, such as a full disk."""


class ParserRunner(Protocol):
    """Runner of functions on hostile input; `asyncio.to_thread` is one without limits."""

    async def __call__(self, function: Callable[..., R], /, *args: Any) -> R:
        """Return the function's result.

        Arguments and result are plain values or dataclasses, as the function's annotations state; an argument may be a
        function, which is called in the calling process, in a thread.

        Raises:
            ParserEnded: The function was terminated.
            ParserFailed: The function could not be run.

        """
        ...
