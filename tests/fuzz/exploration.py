"""Amount of fuzzing: a few fixed examples in `make test`, random ones for a configured time in `make fuzz`."""

import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

SECONDS = float(os.environ.get("FUZZ_SECONDS", "600"))
"""Seconds for all operations, and for all parsers, in `make fuzz`; each gets an equal part."""
BATCH = 100
PATIENCE = 900
"""Seconds by which a test may exceed its time, because minimising an example takes a while."""


@dataclass(frozen=True)
class Effort:
    """Random examples for `seconds`, or (None) a fixed number of `examples`, the same every time."""

    examples: int
    seconds: float | None = None


def parametrize_effort(examples: int, parts: int) -> pytest.MarkDecorator:
    """Parametrise a test with its short form and, marked `fuzz`, its long form; `parts` tests share the time."""
    seconds = SECONDS / parts
    marks = [pytest.mark.fuzz, pytest.mark.timeout(seconds + PATIENCE)]
    long = pytest.param(Effort(BATCH, seconds), id="long", marks=marks)
    return pytest.mark.parametrize("effort", [pytest.param(Effort(examples), id="short"), long])


def check_examples(effort: Effort, check: Callable[..., None], *strategies: SearchStrategy[Any]) -> None:
    """Check examples of the strategies; a failure is minimised and reported with a seed."""
    if effort.seconds is None:
        _run_examples(effort, check, strategies, fixed=True)
        return
    until = time.monotonic() + effort.seconds
    while time.monotonic() < until:
        _run_examples(effort, check, strategies, fixed=False)


def _run_examples(
    effort: Effort, check: Callable[..., None], strategies: tuple[SearchStrategy[Any], ...], *, fixed: bool
) -> None:
    def example(values: tuple[Any, ...]) -> None:
        check(*values)

    relaxed = settings(
        max_examples=effort.examples,
        derandomize=fixed,
        database=None,
        deadline=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )
    test = relaxed(given(st.tuples(*strategies))(example))
    if not fixed:
        test = seed(random.randrange(2**64))(test)
    test()
