"""Tables that a catalogue person can edit: the words, rules and weights that headers are read by, a file each."""

import csv
import tomllib
from importlib.resources import files
from typing import Any


def read(name: str) -> str:
    """Return the text of a file of this folder."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def table(name: str) -> dict[str, Any]:
    """Return a TOML file of this folder, named without its ending."""
    return tomllib.loads(read(f"{name}.toml"))


def rows(name: str) -> list[dict[str, str]]:
    """Return the rows of a CSV file of this folder, named without its ending; lines that begin with # are remarks."""
    return list(csv.DictReader(line for line in read(f"{name}.csv").splitlines() if not line.startswith("#")))


def words(text: str) -> list[str]:
    """Return the words or phrases of a list that commas part."""
    return [word for part in text.split(",") if (word := " ".join(part.split()))]
