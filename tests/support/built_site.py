"""The documentation site as `make docs` builds it, built anew where something that it is made of has changed."""

import fcntl
import subprocess
import sys
from functools import cache
from pathlib import Path

from entrypoints.site.site import BUILT, POLICY_FILE, Site

ROOT = Path(__file__).parents[2]
_MADE_OF = ("docs", "adapters/wire", "entrypoints/areas", "entrypoints/operations", "entrypoints/site")
BASE_URL, DOCS_URL = "https://api.joinery.test", "https://docs.joinery.test"


@cache
def site() -> Site:
    """The site; built once, however many processes ask."""
    with (ROOT / ".site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made_of = [
            path
            for folder in _MADE_OF
            for path in (ROOT / folder).rglob("*.*")
            if not {BUILT, "__pycache__"} & {*path.parents, path.parent.name}
        ]
        stated = BUILT / POLICY_FILE
        if not stated.exists() or max(path.stat().st_mtime for path in made_of) > stated.stat().st_mtime:
            subprocess.run([sys.executable, "-m", "entrypoints.site.build"], cwd=ROOT, check=True, timeout=500)
    return Site(BASE_URL, DOCS_URL)
