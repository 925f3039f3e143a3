"""Parsing of untrusted input with limits on time and memory."""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

R = TypeVar("R")


class ParserTerminated(Exception):
    """The parser crashed, or was terminated because it exceeded its limits of time or memory."""


class ParserFailed(Exception):
    """The parser could not be run for a reason other than its input, such as a full disk."""


class ParserRunner(Protocol):
    """Function that runs parsers on untrusted input; `asyncio.to_thread` is an implementation without limits."""

    async def __call__(self, function: Callable[..., R], /, *args: Any) -> R:
        """Call `function` with the arguments, within limits of time and memory, and return the function's result.

        The function's parameters and result must be annotated with types of plain values or dataclasses. One argument
        may be a function, which is called in a thread of the calling process.

        Raises:
            ParserTerminated: The function was terminated.
            ParserFailed: The function could not be run.
        """
        ...
