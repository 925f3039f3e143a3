"""Messages of a call of one function in a process of its own, framed and decoded as those of readers (messages.py)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import GenericAlias
from typing import Any, Final, get_args, get_origin, get_type_hints

import msgspec


class Call(msgspec.Struct, tag=True, frozen=True):
    """Call the function of that name, within so many seconds of processor time."""

    function: str
    cpu: int
    arguments: msgspec.Raw


class Answer(msgspec.Struct, tag=True, frozen=True):
    """The result of the function that was passed as an argument."""

    value: msgspec.Raw


class Ask(msgspec.Struct, tag=True, frozen=True):
    """Call the function that was handed over as an argument."""

    arguments: msgspec.Raw


class Returned(msgspec.Struct, tag=True, frozen=True):
    """The result of the called function."""

    value: msgspec.Raw


class Raised(msgspec.Struct, tag=True, frozen=True):
    """The called function raised: the name of the class, and those of its arguments that are texts."""

    kind: str
    arguments: tuple[str, ...]


to_child: Final = msgspec.msgpack.Decoder(Call | Answer).decode
to_parent: Final = msgspec.msgpack.Decoder(Ask | Returned | Raised).decode
decode: Final = msgspec.msgpack.decode


@dataclass(frozen=True, slots=True)
class Signature:
    """Types of a function's parameters and result.

    `callback` is the position of the parameter that is a function, `asked` and `answered` are that one's types.
    """

    arguments: Any
    result: Any
    callback: int | None = None
    asked: Any = None
    answered: Any = None

    @classmethod
    def of(cls, function: Callable[..., Any]) -> "Signature":
        """Read the annotations of a function of plain values, dataclasses, and at most one function."""
        hints = get_type_hints(function)
        result, kinds = hints.pop("return"), list(hints.values())
        callback = next((at for at, kind in enumerate(kinds) if get_origin(kind) is Callable), None)
        if callback is None:
            return cls(_tuple_of(kinds), result)
        asked, answered = get_args(kinds[callback])
        kinds[callback] = None
        return cls(_tuple_of(kinds), result, callback, _tuple_of(asked), answered)


def _tuple_of(kinds: Iterable[Any]) -> Any:
    return GenericAlias(tuple, tuple(kinds))
