"""What a process is made of: every part is found by its type, and made once, when it is first asked for."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from inspect import Parameter, isawaitable, signature
from typing import Any, Protocol, TypeVar, cast

P = TypeVar("P")


class Readiness(dict[str, Callable[[], Awaitable[bool]]]):
    """What /readyz asks, by name: whether one dependency answers; raising counts as no."""


class Waiting(Protocol):
    """How many requests wait for a database connection."""

    def __call__(self) -> int:
        """Return their number."""
        ...


class Dependencies:
    """The parts of one process, by type: mostly a port.

    `dependencies[T]` is, in this order: the part that was set by `dependencies[T] = part`; what `makers[T]` makes, or, where that is a class
    (`FeedReaders: ProcessFeedReaders`), the part of that class; what the function that is annotated to return T makes; an instance of T. A maker
    is called with the parts that its parameters are annotated with; a parameter with a default keeps it where its type is not listed. A
    `partial` keeps the arguments that it has. A part that may be missing is listed as `X | None`. Each part is made once.

    Args:
        makers: By the type that is asked for, what makes it; a class there is a part itself, and made once.
        functions: Makers of the types that they are annotated to return.

    """

    def __init__(self, makers: Mapping[Any, Callable[..., Any]], functions: Iterable[Callable[..., Any]] = ()) -> None:
        self._makers = {signature(one, eval_str=True).return_annotation: one for one in functions} | dict(makers)
        self._made: dict[Any, Any] = {Dependencies: self}

    def __getitem__(self, wanted: type[P]) -> P:
        """Return the part of a type. Raises TypeError or ValueError where it cannot be made."""
        if wanted not in self._made:
            maker = self._makers.get(wanted, wanted)
            known = maker is not wanted and isinstance(maker, type)
            self._made[wanted] = self[cast("type[P]", maker)] if known else self.call(maker)
        return cast("P", self._made[wanted])

    def __setitem__(self, wanted: Any, part: Any) -> None:
        """Have whatever is made from now on be given this part."""
        self._made[wanted] = part

    def find(self, wanted: type[P]) -> P | None:
        """Return the part of a type that may be missing."""
        return self[cast("type[P]", wanted | None)]

    def call(self, maker: Callable[..., P]) -> P:
        """Return what a function or class makes of the parts that its parameters name."""
        wanted, given = signature(maker, eval_str=True).parameters.values(), getattr(maker, "keywords", {})
        return maker(**{one.name: self[one.annotation] for one in wanted if one.name not in given and self._wants(one)})

    async def close(self) -> None:
        """Close what has been made, the latest first; a part that fails to close leaves none of the others open."""
        async with AsyncExitStack() as closing:
            for part in {id(part): part for part in self._made.values() if part is not self}.values():
                if close := getattr(part, "close", None):
                    closing.push_async_callback(_awaited, close)

    def _wants(self, given: Parameter) -> bool:
        return given.default is given.empty or given.annotation in self._makers or given.annotation in self._made


async def _awaited(close: Callable[[], Any]) -> None:
    if isawaitable(closing := close()):
        await closing
