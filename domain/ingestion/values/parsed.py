"""What parsing one value gives: the value, if there is one, and what was wrong with it."""

from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from domain.kernel.problems import ProblemKind

T = TypeVar("T")

_SHOWN: Final = 80


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a value is not, or not wholly, taken: `detail` is a sentence."""

    problem: ProblemKind
    detail: str


@dataclass(frozen=True, slots=True)
class Parsed(Generic[T]):
    """The value read, None when the text states none, and the faults found; a value may come with faults.

    Values are shared between results for equal text: treat them as read-only.
    """

    value: T | None = None
    faults: tuple[Fault, ...] = ()


NOTHING: Final[Parsed[Any]] = Parsed()
"""A blank, a placeholder: absent and nothing wrong with it."""


def quoted(text: str) -> str:
    """`text` in quotation marks for a sentence, cut to a readable length."""
    # As many words as can be shown, so that a long text with many faults is not split anew for each of them.
    flat = " ".join(text.split(None, _SHOWN))
    return f'"{flat}"' if len(flat) <= _SHOWN else f'"{flat[:_SHOWN]}…"'


def conflict(text: str, reason: str) -> Fault:
    """Return the fault of what was read all the same: `text` `reason`."""
    return Fault(ProblemKind.CONFLICT, f"{quoted(text)} {reason}.")


def refused(problem: ProblemKind, text: str, reason: str) -> Parsed[Any]:
    """A result without value whose fault says that `text` `reason`."""
    return Parsed(None, (Fault(problem, f"{quoted(text)} {reason}."),))


def unreadable(text: str, reason: str) -> Parsed[Any]:
    """The commonest refusal: `text` `reason`, so nothing can be made of it."""
    return refused(ProblemKind.UNREADABLE, text, reason)


def not_said(text: str) -> Parsed[Any]:
    """The result for a placeholder: nothing; a `?`, `.` or `-` where a measure belongs is a fault, as someone left a gap."""
    return unreadable(text, "stands where a measure belongs") if text.strip() and not text.strip(" ?.-–—") else NOTHING


def overlong(text: str, most: int) -> Parsed[Any]:
    """The refusal of a text that is longer than `most` characters."""
    return refused(ProblemKind.TOO_LONG, text, f"is longer than {most} characters")
