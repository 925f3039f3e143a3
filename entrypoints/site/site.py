"""The documentation site as Sphinx built it (build.py), with the addresses of this service, and pages that stand alone."""

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
"""The folder of the built site: in a checkout made by `make docs`, in a wheel by setup.py."""
POLICY_FILE = "policy.json"
BASE_URL = "https://api.joinery.invalid"
DOCS_URL = "https://docs.joinery.invalid"
"""Stand in the built pages for the addresses at which the API and the error types are published."""
HOME = "/docs/"
_NEAREST = 6
"""Pages that an unknown address is answered with."""
_MISTYPED = 40
"""Characters of a name that is compared with those of pages: nobody mistypes a longer one, and comparing takes its time."""
_STYLE = files("entrypoints.site").joinpath("plain.css").read_text("utf-8").strip()


def hash_source(text: str) -> str:
    """Write the source of a Content-Security-Policy that allows an inline text."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _policy(scripts: Iterable[str], styles: Iterable[str]) -> str:
    return (
        f"default-src 'none'; style-src 'self' {' '.join(styles)}; script-src 'self' {' '.join(scripts)}; "
        "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    )


PLAIN_POLICY = _policy((), [hash_source(_STYLE)])
"""The Content-Security-Policy of pages that stand alone."""


_TEMPLATES = Environment(
    loader=PackageLoader("entrypoints.site"), autoescape=True, trim_blocks=True, lstrip_blocks=True
)


def plain(template: str, **values: Any) -> str:
    """Write a page that stands alone: no menu, no search, no script."""
    return _TEMPLATES.get_template(f"{template}.html.jinja").render(values, style=_STYLE)


class Site:
    """Files by their address. `base_url` is where the API is reached, `docs_url` where error types are published."""

    def __init__(self, base_url: str, docs_url: str) -> None:
        self._urls = ((BASE_URL, base_url), (DOCS_URL, docs_url))
        is_built = (BUILT / POLICY_FILE).is_file()  # it is written last
        paths = [path for path in BUILT.rglob("*") if path.is_file()] if is_built else []
        self._files = {path.relative_to(BUILT).as_posix(): path for path in paths}
        allowed = json.loads((BUILT / POLICY_FILE).read_text("utf-8")) if is_built else {}
        self.policy = _policy(allowed.get("script", ()), allowed.get("style", ()))
        """The Content-Security-Policy that pages are served with."""

    def moved(self, path: str) -> str | None:
        """Find the address to which one leads that has no page of its own; None for any other."""
        if path in {"/", HOME.rstrip("/")}:
            return HOME
        bare = path.rstrip("/")
        if path not in {bare, HOME}:
            return bare if self._find(bare) else self.moved(bare)
        return f"/docs{path}" if path.startswith("/errors") and self._find(f"/docs{path}") else None

    def read(self, path: str) -> tuple[str, bytes] | None:
        """Read the media type and the content of the file at the address; None where there is none."""
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
        """Write the page for an address that there is not, with those that may have been meant."""
        pages = {name.removesuffix(".html").rpartition("/")[2]: name for name in self._files if name.endswith(".html")}
        name = path.rstrip("/").rpartition("/")[2]
        alike = get_close_matches(name, pages, _NEAREST, 0.6) if len(name) <= _MISTYPED else []
        nearest = [HOME + pages[one].removesuffix(".html") for one in alike]
        return plain("lost", path=path, nearest=nearest, is_built=bool(self._files))
