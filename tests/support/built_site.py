"""Documentation site as `make docs` builds it; it is rebuilt if one of its inputs has changed."""

import fcntl
import subprocess
import sys
from functools import cache
from pathlib import Path

from entrypoints.site.site import BUILT_FOLDER, POLICY_FILE, Site

ROOT = Path(__file__).parents[2]
_INPUTS = ("docs", "adapters/api_json", "entrypoints/areas", "entrypoints/operations", "entrypoints/site")
BASE_URL, DOCS_URL = "https://api.joinery.test", "https://docs.joinery.test"


@cache
def build_site() -> Site:
    """Return the site, which is built once, even if several processes request it."""
    with (ROOT / ".site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made_of = [
            path
            for folder in _INPUTS
            for path in (ROOT / folder).rglob("*.*")
            if not {BUILT_FOLDER, "__pycache__"} & {*path.parents, path.parent.name}
        ]
        stated = BUILT_FOLDER / POLICY_FILE
        if not stated.exists() or max(path.stat().st_mtime for path in made_of) > stated.stat().st_mtime:
            subprocess.run([sys.executable, "-m", "entrypoints.site.build"], cwd=ROOT, check=True, timeout=500)
    return Site(BASE_URL, DOCS_URL)
