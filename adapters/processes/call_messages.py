"""Messages of a function call in a child process, framed and decoded like those of readers (messages.py)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import GenericAlias
from typing import Any, Final, get_args, get_origin, get_type_hints

import msgspec


class Call(msgspec.Struct, tag=True, frozen=True):
    """A request to call the named function within `cpu` seconds of CPU time."""

    function: str
    cpu: int
    arguments: msgspec.Raw


class CallbackResult(msgspec.Struct, tag=True, frozen=True):
    """The result of the callback."""

    value: msgspec.Raw


class CallbackRequest(msgspec.Struct, tag=True, frozen=True):
    """A request to call the callback, the function that was passed as an argument."""

    arguments: msgspec.Raw


class Returned(msgspec.Struct, tag=True, frozen=True):
    """The result of the called function."""

    value: msgspec.Raw


class Raised(msgspec.Struct, tag=True, frozen=True):
    """The exception of the called function: the name of its class, and those of its arguments that are strings."""

    kind: str
    arguments: tuple[str, ...]


to_child: Final = msgspec.msgpack.Decoder(Call | CallbackResult).decode
to_parent: Final = msgspec.msgpack.Decoder(CallbackRequest | Returned | Raised).decode
decode: Final = msgspec.msgpack.decode


@dataclass(frozen=True, slots=True)
class Signature:
    """The types of a function's parameters and result.

    `callback` is the position of the parameter that is a function; `callback_arguments` and `callback_result` are the types
    of that function.
    """

    arguments: Any
    result: Any
    callback: int | None = None
    callback_arguments: Any = None
    callback_result: Any = None

    @classmethod
    def of(cls, function: Callable[..., Any]) -> "Signature":
        """Read the annotations of a function whose parameters are plain values, dataclasses, and at most one function."""
        hints = get_type_hints(function)
        result, kinds = hints.pop("return"), list(hints.values())
        callback = next((at for at, kind in enumerate(kinds) if get_origin(kind) is Callable), None)
        if callback is None:
            return cls(_tuple_of(kinds), result)
        parameters, answer = get_args(kinds[callback])
        kinds[callback] = None
        return cls(_tuple_of(kinds), result, callback, _tuple_of(parameters), answer)


def _tuple_of(kinds: Iterable[Any]) -> Any:
    return GenericAlias(tuple, tuple(kinds))
