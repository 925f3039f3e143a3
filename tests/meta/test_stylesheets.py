"""The console's stylesheets do not conflict: a class is styled in one of them."""

import re
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "entrypoints/console/static"
_CLASS_RULE = re.compile(r"(?:^|[},])\s*\.([a-z][a-z-]*)(?=[{,])")
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
SHARED = frozenset({"table", "rows"})
"""Classes of the first stylesheet that another one extends."""


def _list_styled_classes(name: str) -> set[str]:
    """Return the classes with rules without other selectors."""
    return set(_CLASS_RULE.findall(_COMMENT.sub("", (FOLDER / name).read_text("utf-8"))))


def test_a_class_is_styled_in_one_stylesheet() -> None:
    sheets = {path.name: _list_styled_classes(path.name) for path in sorted(FOLDER.glob("*.css"))}
    assert len(sheets) > 1
    names = sorted(sheets)
    for at, first in enumerate(names):
        for second in names[at + 1 :]:
            assert sheets[first] & sheets[second] <= SHARED, (first, second)
