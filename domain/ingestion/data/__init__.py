"""Words that vendors use, in all supported languages: one TOML or CSV file for each concept.

A value in a TOML file is a text of words separated by spaces, or a list if entries contain spaces. The table `patterns` of a file contains
regular expressions, which ignore case.
"""

import csv
import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any


def read_data_file(name: str) -> str:
    """Return the text of a file of this package by its name."""
    return files(__name__).joinpath(name).read_text("utf-8")


@cache
def load_toml(name: str) -> dict[str, Any]:
    """Return the content of a TOML file of this package by its name without extension."""
    return tomllib.loads(read_data_file(f"{name}.toml"))


def load_csv_rows(name: str) -> list[dict[str, str]]:
    """Return the rows of a CSV file of this package by its name without extension. Lines that begin with # are comments."""
    return list(csv.DictReader(line for line in read_data_file(f"{name}.csv").splitlines() if not line.startswith("#")))


def split_phrases(text: str) -> list[str]:
    """Split a text at commas and return the phrases, without leading, trailing and repeated white space."""
    return [phrase for part in text.split(",") if (phrase := " ".join(part.split()))]


def parse_entries(value: str | list[str]) -> list[str]:
    """Return the entries of a value in a TOML file: the words of a text, or the list itself."""
    return value.split() if isinstance(value, str) else value


def load_word_set(name: str, key: str) -> frozenset[str]:
    """Return the entries of one value of a TOML file as a set."""
    return frozenset(parse_entries(load_toml(name)[key]))


def load_regex_alternatives(name: str, key: str) -> str:
    """Return the entries of one value of a TOML file, joined with `|` for a regular expression."""
    return "|".join(parse_entries(load_toml(name)[key]))


def invert_table(table: Mapping[str, str | list[str]]) -> dict[str, str]:
    """Invert a table that lists words under each key: return the key of each word."""
    return {word: meaning for meaning, value in table.items() for word in parse_entries(value)}


@cache
def load_patterns(name: str) -> dict[str, re.Pattern[str]]:
    """Return the regular expressions in the table `patterns` of a TOML file by key; all ignore case."""
    return {key: re.compile(text.strip("\n"), re.I) for key, text in load_toml(name)["patterns"].items()}
