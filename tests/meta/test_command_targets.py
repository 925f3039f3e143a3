"""What a command names is there: modules are only imported when their command is given."""

import argparse
import importlib
from collections.abc import Iterator

import pytest

from entrypoints.cli.main import parser


def _targets(one: argparse.ArgumentParser) -> Iterator[str]:
    if target := one.get_default("run"):
        yield str(target)
    for action in one._actions:  # noqa: SLF001  argparse tells of them nowhere else
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001  the same
            for command in action.choices.values():
                yield from _targets(command)


@pytest.mark.parametrize("target", sorted(set(_targets(parser()))))
def test_it_is_there(target: str) -> None:
    module, _, function = target.partition(":")
    assert callable(getattr(importlib.import_module(f"entrypoints.cli.{module}"), function))
