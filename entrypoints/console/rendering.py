"""Templates, compiled once a process, and the static files that pages name."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.runtime import Macro

from entrypoints.console import formatting
from entrypoints.http.exchange import Response

T = TypeVar("T")
STATIC: Final = "/console/static/"
_TYPES: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".txt": "text/plain"}


@dataclass(frozen=True, slots=True)
class Portion(Generic[T]):
    """Neighbours of a long list: the first stands at `start` (from 0), `total` is how many there are in all."""

    items: Sequence[T]
    start: int
    total: int

    @classmethod
    def of(cls, items: Sequence[T], start: int | None, most: int) -> "Portion[T]":
        """Take at most so many from `start` on; from the first on where there is no such place."""
        begin = start if start is not None and start < len(items) else 0
        return cls(items[begin : begin + most], begin, len(items))

    @property
    def following(self) -> int | None:
        """Where the next portion begins; None after the last."""
        end = self.start + len(self.items)
        return end if end < self.total else None

    @property
    def parted(self) -> bool:
        """Whether there is more than these."""
        return len(self.items) < self.total


class StaticFiles:
    """The stylesheets, scripts and pictures, read once, under an address that changes with them, so that browsers keep them."""

    def __init__(self) -> None:
        folder, digest = Path(__file__).parent / "static", blake2b(digest_size=6)
        self._files: dict[str, tuple[str, bytes]] = {}
        for path in sorted(folder.rglob("*")):
            if path.suffix in _TYPES:
                name, body = path.relative_to(folder).as_posix(), path.read_bytes()
                self._files[name] = _TYPES[path.suffix], body
                digest.update(name.encode() + b"\0" + body)
        self._base = f"{STATIC}{digest.hexdigest()}/"

    def address(self, name: str) -> str:
        """Return where a file stands. Raises KeyError for one that there is not."""
        self._files[name]
        return self._base + name

    def find(self, path: str) -> Response | None:
        """Return the file at a path below STATIC; an earlier version's address has the file as it is now, kept shortly."""
        name = path.removeprefix(STATIC).partition("/")[2]
        if name not in self._files:
            return None
        kind, body = self._files[name]
        lasting = path.startswith(self._base)
        headers = [
            (b"content-type", kind.encode() + (b"; charset=utf-8" if kind.startswith("text/") else b"")),
            (b"cache-control", b"public, max-age=31536000, immutable" if lasting else b"no-cache"),
            (b"x-content-type-options", b"nosniff"),
            (b"cross-origin-resource-policy", b"same-origin"),
            (b"vary", b"Accept-Encoding"),
        ]
        return Response(200, headers, body)


@cache
def static_files() -> StaticFiles:
    """Return the files of this process."""
    return StaticFiles()


class _Environment(Environment):
    """Reads a property that a JSON object lacks as none; a name that nothing defines is still an error."""

    def getattr(self, obj: Any, attribute: str) -> Any:
        try:
            return getattr(obj, attribute)
        except AttributeError:
            return obj.get(attribute) if isinstance(obj, dict) else super().getattr(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        return obj.get(argument) if isinstance(obj, dict) else super().getitem(obj, argument)


@cache
def environment() -> Environment:
    """Return the templates of this process; everything is escaped unless a macro made it."""
    made = _Environment(
        loader=PackageLoader("entrypoints.console", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        cache_size=-1,
    )
    made.filters.update(formatting.FILTERS)
    made.globals |= {
        "static": static_files().address,
        "labels": formatting.LABELS,
        "number": formatting.number,
        "size": formatting.size,
    }
    # As globals, for a block that is rendered alone runs no import of its template.
    macros = vars(made.get_template("macros.html").module)
    made.globals |= {name: value for name, value in macros.items() if isinstance(value, Macro)}
    return made


def rendered(template: str, block: str | None, values: dict[str, Any]) -> str:
    """Return the template's text, or that of one block of it, where it has one of that name."""
    found = environment().get_template(template)
    part = found.blocks.get(block) if block is not None else None
    if part is None:
        return found.render(values)
    return "".join(part(found.new_context(values))).strip()
