"""The documentation site as built by Sphinx (build.py), with the service's URLs, and standalone pages."""

import json
import mimetypes
from base64 import b64encode
from collections.abc import Iterable
from difflib import get_close_matches
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader

BUILT = Path(str(files("entrypoints.site"))) / "html"
"""Folder of the built site: in a checkout created by `make docs`, in a wheel by setup.py."""
POLICY_FILE = "policy.json"
BASE_URL = "https://api.joinery.invalid"
DOCS_URL = "https://docs.joinery.invalid"
"""Placeholders in the built pages for the URLs of the API and of the error types."""
HOME = "/docs/"
_NEAREST = 6
"""Suggestions on the page for an unknown path."""
_MISTYPED = 40
"""Maximum characters of a name that is compared with page names, to limit the cost."""
_STYLE = files("entrypoints.site").joinpath("plain.css").read_text("utf-8").strip()


def hash_source(text: str) -> str:
    """Return the Content-Security-Policy source that allows an inline text."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _policy(scripts: Iterable[str], styles: Iterable[str]) -> str:
    return (
        f"default-src 'none'; style-src 'self' {' '.join(styles)}; script-src 'self' {' '.join(scripts)}; "
        "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    )


PLAIN_POLICY = _policy((), [hash_source(_STYLE)])
"""Content-Security-Policy of standalone pages."""


_TEMPLATES = Environment(
    loader=PackageLoader("entrypoints.site"), autoescape=True, trim_blocks=True, lstrip_blocks=True
)


def plain(template: str, **values: Any) -> str:
    """Render a standalone page, without menu, search or scripts."""
    return _TEMPLATES.get_template(f"{template}.html.jinja").render(values, style=_STYLE)


class Site:
    """Files of the site by path. `base_url` is the URL of the API, `docs_url` that of error types."""

    def __init__(self, base_url: str, docs_url: str) -> None:
        self._urls = ((BASE_URL, base_url), (DOCS_URL, docs_url))
        is_built = (BUILT / POLICY_FILE).is_file()  # the build writes it last
        paths = [path for path in BUILT.rglob("*") if path.is_file()] if is_built else []
        self._files = {path.relative_to(BUILT).as_posix(): path for path in paths}
        allowed = json.loads((BUILT / POLICY_FILE).read_text("utf-8")) if is_built else {}
        self.policy = _policy(allowed.get("script", ()), allowed.get("style", ()))
        """Content-Security-Policy of the pages."""

    def moved(self, path: str) -> str | None:
        """Return the redirect target of a path without a page of its own, or None."""
        if path in {"/", HOME.rstrip("/")}:
            return HOME
        bare = path.rstrip("/")
        if path not in {bare, HOME}:
            return bare if self._find(bare) else self.moved(bare)
        return f"/docs{path}" if path.startswith("/errors") and self._find(f"/docs{path}") else None

    def read(self, path: str) -> tuple[str, bytes] | None:
        """Return media type and content of the file at the path, or None."""
        file = self._find(path)
        if file is None:
            return None
        kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        if file.suffix != ".html":
            return kind, file.read_bytes()
        text = file.read_text("utf-8")
        for placeholder, url in self._urls:
            text = text.replace(placeholder, url)
        return f"{kind}; charset=utf-8", text.encode()

    def _find(self, path: str) -> Path | None:
        name = path.removeprefix(HOME) or "index"
        return self._files.get(f"{name}.html") or self._files.get(name)

    def lost(self, path: str) -> str:
        """Render the page for an unknown path, with similar pages."""
        pages = {name.removesuffix(".html").rpartition("/")[2]: name for name in self._files if name.endswith(".html")}
        name = path.rstrip("/").rpartition("/")[2]
        similar = get_close_matches(name, pages, _NEAREST, 0.6) if len(name) <= _MISTYPED else []
        nearest = [HOME + pages[name].removesuffix(".html") for name in similar]
        return plain("lost", path=path, nearest=nearest, is_built=bool(self._files))
