"""Dependency injection: instances are found by type and created at first use."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from inspect import Parameter, isawaitable, signature
from typing import Any, Protocol, TypeVar, cast

T = TypeVar("T")


class ReadinessChecks(dict[str, Callable[[], Awaitable[bool]]]):
    """Checks of /readyz by name. A check returns whether a dependency, such as the database, is available; an error also means False."""


class WaitingRequestCounter(Protocol):
    """Function that counts the requests that wait for a database connection."""

    def __call__(self) -> int:
        """Return the number of waiting requests."""
        ...


class Dependencies:
    """Container of one process's instances, each found by its type (usually a port) and created once, at first use.

    `dependencies[T]` is the first of:

    1. the instance that was set by `dependencies[T] = instance`
    2. the result of the factory of T; if that is a class (`FeedReaderFactory: ProcessFeedReaders`), the instance of that class
    3. the result of the function whose return annotation is T
    4. the result of T()

    A factory is called with the instances of its parameters' types. A parameter with a default keeps the default, unless its type
    has a factory. A `partial` keeps its arguments. An instance that may be missing is annotated as `X | None`.

    Args:
        factory_by_type: The factories by type.
        factories: Further factories, each for the type of its return annotation.
    """

    def __init__(
        self, factory_by_type: Mapping[Any, Callable[..., Any]], factories: Iterable[Callable[..., Any]] = ()
    ) -> None:
        self._factories = {
            signature(function, eval_str=True).return_annotation: function for function in factories
        } | dict(factory_by_type)
        self._instances: dict[Any, Any] = {Dependencies: self}

    def __getitem__(self, instance_type: type[T]) -> T:
        """Return the instance of a type. Raises TypeError or ValueError if the instance cannot be created."""
        if instance_type not in self._instances:
            factory = self._factories.get(instance_type, instance_type)
            is_alias = factory is not instance_type and isinstance(factory, type)
            self._instances[instance_type] = self[cast("type[T]", factory)] if is_alias else self.call(factory)
        return cast("T", self._instances[instance_type])

    def __setitem__(self, instance_type: Any, instance: Any) -> None:
        """Set the instance of a type, for everything that is created afterwards."""
        self._instances[instance_type] = instance

    def find_optional(self, instance_type: type[T]) -> T | None:
        """Return the instance of an optional type `X | None`; None if there is no instance."""
        return self[cast("type[T]", instance_type | None)]

    def call(self, factory: Callable[..., T]) -> T:
        """Call a function or class, passing for each parameter the instance of the parameter's type."""
        parameters, bound = signature(factory, eval_str=True).parameters.values(), getattr(factory, "keywords", {})
        return factory(
            **{
                parameter.name: self[parameter.annotation]
                for parameter in parameters
                if parameter.name not in bound and self._is_injected(parameter)
            }
        )

    async def close(self) -> None:
        """Close all created instances, the latest first. If closing an instance fails, the others are closed nevertheless."""
        async with AsyncExitStack() as closing:
            for instance in {id(value): value for value in self._instances.values() if value is not self}.values():
                if close := getattr(instance, "close", None):
                    closing.push_async_callback(_close_instance, close)

    def _is_injected(self, parameter: Parameter) -> bool:
        return (
            parameter.default is parameter.empty
            or parameter.annotation in self._factories
            or parameter.annotation in self._instances
        )


async def _close_instance(close: Callable[[], Any]) -> None:
    if isawaitable(closing := close()):
        await closing
