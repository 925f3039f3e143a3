"""Finds the pages that the site is made of: in a checkout beside the code, in an installed package inside it."""

from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

_CHECKOUT: Final = Path(__file__).parents[2]
PACKED: Final = "pages"
"""Where the build puts docs/ and CHANGELOG.md inside this package (setup.py)."""


@cache
def root() -> Traversable:
    """The folder that holds `docs` and `CHANGELOG.md`. Raises FileNotFoundError in an installation without them."""
    packed = files(__package__).joinpath(PACKED)
    for place in (packed, _CHECKOUT):
        if place.joinpath("CHANGELOG.md").is_file() and place.joinpath("docs").is_dir():
            return place
    raise FileNotFoundError("The documentation is not part of this installation: build it from a whole checkout.")


def read(path: str) -> str:
    """The text of a file, named as in the repository (`docs/webhooks.md`)."""
    return root().joinpath(path).read_text("utf-8")


def decisions() -> list[str]:
    """The files of docs/decisions, in their order, without `.md`."""
    found = root().joinpath("docs").joinpath("decisions").iterdir()
    return sorted(file.name.removesuffix(".md") for file in found if file.name.endswith(".md"))
