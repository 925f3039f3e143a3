"""Vocabulary of vendors: one TOML file for each concept, in all supported languages.

A value is a text of words separated by blanks, or a list if entries contain blanks. In files of patterns the entries are
regular expressions, which ignore case.
"""

import csv
import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any


def read(name: str) -> str:
    """Return the text of the file `name`."""
    return files(__name__).joinpath(name).read_text("utf-8")


@cache
def load(name: str) -> dict[str, Any]:
    """Return the tables of the file `name`."""
    return tomllib.loads(read(f"{name}.toml"))


def rows(name: str) -> list[dict[str, str]]:
    """Return the rows of the CSV file `name`; lines that begin with # are comments."""
    return list(csv.DictReader(line for line in read(f"{name}.csv").splitlines() if not line.startswith("#")))


def phrases(text: str) -> list[str]:
    """Return the phrases of a text, which are separated by commas."""
    return [phrase for part in text.split(",") if (phrase := " ".join(part.split()))]


def entries(value: str | list[str]) -> list[str]:
    """Return the entries of a value, in order."""
    return value.split() if isinstance(value, str) else value


def words(name: str, key: str) -> frozenset[str]:
    """Return one value of a file as a set."""
    return frozenset(entries(load(name)[key]))


def pattern(name: str, key: str) -> str:
    """Return one value of a file as alternatives in a regular expression."""
    return "|".join(entries(load(name)[key]))


def meanings(table: Mapping[str, str | list[str]]) -> dict[str, str]:
    """Return the key of each word of a table, by word."""
    return {word: meaning for meaning, value in table.items() for word in entries(value)}


@cache
def expressions(name: str) -> dict[str, re.Pattern[str]]:
    """Return the regular expressions of a file by name; all ignore case."""
    return {key: re.compile(text.strip("\n"), re.I) for key, text in load(name)["patterns"].items()}
