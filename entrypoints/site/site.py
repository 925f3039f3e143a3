"""Files of the built documentation site, with the service's URLs inserted, and standalone pages."""

import json
import mimetypes
from base64 import b64encode
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader

BUILT_FOLDER = Path(str(files("entrypoints.site"))) / "html"
"""Folder of the built site, which `make docs` creates in a checkout, and setup.py in a wheel."""
POLICY_FILE = "policy.json"
"""File with the hashes of inline scripts and styles that the Content-Security-Policy allows."""
BASE_URL = "https://api.joinery.invalid"
"""Placeholder in the built pages for the URL of the API."""
DOCS_URL = "https://docs.joinery.invalid"
"""Placeholder in the built pages for the URL below which error types are described."""
HOME_PATH = "/docs/"
"""Path of the first page of the site."""
_MAX_SUGGESTIONS = 6
"""Maximum number of similar pages that the page for an unknown path lists."""
_MAX_COMPARED_LENGTH = 40
"""Maximum characters of an unknown name; longer names are not compared with page names, to limit the cost."""


def build_hash_source(text: str) -> str:
    """Return the source expression that allows an inline script or style in a Content-Security-Policy."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _build_policy(scripts: Iterable[str], styles: Iterable[str]) -> str:
    """Return a Content-Security-Policy that allows these inline scripts and styles by their hashes."""
    return (
        f"default-src 'none'; style-src 'self' {' '.join(styles)}; script-src 'self' {' '.join(scripts)}; "
        "font-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    )


PLAIN_POLICY = _build_policy((), ())
"""Content-Security-Policy of standalone pages."""


_TEMPLATES = Environment(
    loader=PackageLoader("entrypoints.site"), autoescape=True, trim_blocks=True, lstrip_blocks=True
)


def render_standalone(template: str, build_static_path: Callable[[str], str], **values: Any) -> str:
    """Render a page that is not part of the built site: without menu, search and scripts.

    Args:
        template: The template's name without suffix.
        build_static_path: Returns the path of a static file of the console, whose styles the page uses.
        **values: Variables of the template.
    """
    return _TEMPLATES.get_template(f"{template}.html.jinja").render(values, static=build_static_path)


class Site:
    """Documentation site: its files by path, redirects, and the page for unknown paths.

    Args:
        base_url: The URL of the API.
        docs_url: The URL below which error types are described.

    Attributes:
        policy: The Content-Security-Policy of the pages.
    """

    def __init__(self, base_url: str, docs_url: str) -> None:
        self._urls = ((BASE_URL, base_url), (DOCS_URL, docs_url))
        is_built = (BUILT_FOLDER / POLICY_FILE).is_file()  # the build writes it last
        paths = [path for path in BUILT_FOLDER.rglob("*") if path.is_file()] if is_built else []
        self._files = {path.relative_to(BUILT_FOLDER).as_posix(): path for path in paths}
        allowed = json.loads((BUILT_FOLDER / POLICY_FILE).read_text("utf-8")) if is_built else {}
        self.policy = _build_policy(allowed.get("script", ()), allowed.get("style", ()))

    def find_redirect(self, path: str) -> str | None:
        """Return the path to which `path` is redirected; None if it is not redirected.

        `/docs` is redirected to HOME_PATH. If the page exists, `/errors/…` is redirected to `/docs/errors/…`, and a path
        that ends in a slash to the path without the slash.
        """
        if path == HOME_PATH.rstrip("/"):
            return HOME_PATH
        bare = path.rstrip("/")
        if path not in {bare, HOME_PATH}:
            return bare if self._find(bare) else self.find_redirect(bare)
        return f"/docs{path}" if path.startswith("/errors") and self._find(f"/docs{path}") else None

    def read(self, path: str) -> tuple[str, bytes] | None:
        """Return the media type and the contents of the file at a path; None if the site has no such file."""
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
        """Return the file of the built site at a path, which may omit the suffix of a page."""
        name = path.removeprefix(HOME_PATH) or "index"
        return self._files.get(f"{name}.html") or self._files.get(name)

    def render_not_found(self, path: str, build_static_path: Callable[[str], str]) -> str:
        """Render the page for an unknown path, with links to pages that have similar names."""
        pages = {name.removesuffix(".html").rpartition("/")[2]: name for name in self._files if name.endswith(".html")}
        name = path.rstrip("/").rpartition("/")[2]
        similar = get_close_matches(name, pages, _MAX_SUGGESTIONS, 0.6) if len(name) <= _MAX_COMPARED_LENGTH else []
        nearest = [HOME_PATH + pages[name].removesuffix(".html") for name in similar]
        return render_standalone("lost", build_static_path, path=path, nearest=nearest, is_built=bool(self._files))
