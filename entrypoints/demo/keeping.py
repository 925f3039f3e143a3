"""What the demo remembers between starts, in DATA/demo.json, for its user's eyes only: the key's secret is in it."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from entrypoints.demo.errors import DemoError
from entrypoints.up.directory import write_private

FILE: Final = "demo.json"


@dataclass(slots=True)
class Kept:
    """`port` is where the feeds are served; `sources` maps a vendor's name to its source's id, `urls` to its URL."""

    port: int = 0
    organisation: str = ""
    key: str = ""
    secret: str = ""
    sources: dict[str, str] = field(default_factory=dict)
    urls: dict[str, str] = field(default_factory=dict)


def load(data_dir: Path) -> Kept:
    """What is remembered; nothing at the first start. Raises DemoError for a file that cannot be read."""
    path = data_dir / FILE
    try:
        return Kept(**json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return Kept()
    except (OSError, ValueError, TypeError) as error:
        raise DemoError(f"{path} cannot be read ({error}); remove it to set the demo up anew.") from error


def save(data_dir: Path, kept: Kept) -> None:
    """Remember."""
    write_private(data_dir / FILE, json.dumps(asdict(kept), indent=2) + "\n")
