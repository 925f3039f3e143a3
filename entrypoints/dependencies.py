"""Dependency injection: every part of a process is found by its type and created at first use."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from inspect import Parameter, isawaitable, signature
from typing import Any, Protocol, TypeVar, cast

P = TypeVar("P")


class Readiness(dict[str, Callable[[], Awaitable[bool]]]):
    """Checks of /readyz by name: whether a dependency responds; an exception counts as no."""


class Waiting(Protocol):
    """Number of requests waiting for a database connection."""

    def __call__(self) -> int:
        """Return the number."""
        ...


class Dependencies:
    """The parts of one process by type, mostly a port.

    `dependencies[T]` is the first of: the part set by `dependencies[T] = part`; the result of `makers[T]`, or, if that is a class
    (`FeedReaders: ProcessFeedReaders`), the part of that class; the result of the function annotated to return T; an instance of T.
    A maker is called with the parts of its parameters' annotations; a parameter with a default keeps it if its type is not listed.
    A `partial` keeps its arguments. An optional part is listed as `X | None`. Each part is created once.

    Args:
        makers: The maker of each type; a class is itself a part, created once.
        functions: Makers of the types that they are annotated to return.

    """

    def __init__(self, makers: Mapping[Any, Callable[..., Any]], functions: Iterable[Callable[..., Any]] = ()) -> None:
        self._makers = {
            signature(function, eval_str=True).return_annotation: function for function in functions
        } | dict(makers)
        self._parts: dict[Any, Any] = {Dependencies: self}

    def __getitem__(self, wanted: type[P]) -> P:
        """Return the part of a type. Raises TypeError or ValueError if it cannot be created."""
        if wanted not in self._parts:
            maker = self._makers.get(wanted, wanted)
            is_alias = maker is not wanted and isinstance(maker, type)
            self._parts[wanted] = self[cast("type[P]", maker)] if is_alias else self.call(maker)
        return cast("P", self._parts[wanted])

    def __setitem__(self, wanted: Any, part: Any) -> None:
        """Set a part, which is used by everything created afterwards."""
        self._parts[wanted] = part

    def find(self, wanted: type[P]) -> P | None:
        """Return the part of a type, or None if it is optional and missing."""
        return self[cast("type[P]", wanted | None)]

    def call(self, maker: Callable[..., P]) -> P:
        """Call a function or class with the parts that its parameters name."""
        parameters, bound = signature(maker, eval_str=True).parameters.values(), getattr(maker, "keywords", {})
        return maker(
            **{
                parameter.name: self[parameter.annotation]
                for parameter in parameters
                if parameter.name not in bound and self._is_injected(parameter)
            }
        )

    async def close(self) -> None:
        """Close all created parts, the latest first; an error does not prevent closing the others."""
        async with AsyncExitStack() as closing:
            for part in {id(part): part for part in self._parts.values() if part is not self}.values():
                if close := getattr(part, "close", None):
                    closing.push_async_callback(_close_part, close)

    def _is_injected(self, given: Parameter) -> bool:
        return given.default is given.empty or given.annotation in self._makers or given.annotation in self._parts


async def _close_part(close: Callable[[], Any]) -> None:
    if isawaitable(closing := close()):
        await closing
