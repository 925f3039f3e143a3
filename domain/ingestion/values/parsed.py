"""What reading one value gives: the value, if there is one, and what was wrong with it."""

from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

T = TypeVar("T")

_SHOWN: Final = 80


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a value is not, or not wholly, taken: `problem` is a kind of decisions.md §2, `detail` a sentence."""

    problem: str
    detail: str


@dataclass(frozen=True, slots=True)
class Reading(Generic[T]):
    """The value read, None when the text states none, and the faults found; a value may come with faults.

    Values are shared between readings of equal text: treat them as read-only.
    """

    value: T | None = None
    faults: tuple[Fault, ...] = ()


NOTHING: Final[Reading[Any]] = Reading()
"""A blank, a placeholder: absent and nothing wrong with it."""


def quoted(text: str) -> str:
    """`text` in quotation marks for a sentence, cut to a readable length."""
    flat = " ".join(text.split())
    return f'"{flat}"' if len(flat) <= _SHOWN else f'"{flat[:_SHOWN]}…"'


def refused(problem: str, text: str, reason: str) -> Reading[Any]:
    """A reading without value whose fault says that `text` `reason`."""
    return Reading(None, (Fault(problem, f"{quoted(text)} {reason}."),))


def not_said(text: str) -> Reading[Any]:
    """The reading of a placeholder: nothing; a `?` or `.` where a measure belongs is told, as someone left a gap."""
    return (
        refused("unreadable", text, "stands where a measure belongs") if text.strip(" ?.") != text.strip() else NOTHING
    )


def overlong(text: str, most: int) -> Reading[Any] | None:
    """A refusal when a text is longer than any value of its kind; what is read by trial takes time with length."""
    return refused("too_long", text, f"is longer than {most} characters") if len(text) > most else None
