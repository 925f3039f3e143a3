"""The console's message catalogues: complete, current, with the placeholders of the English texts."""

from pathlib import Path

import pytest
from babel.messages.catalog import Catalog
from babel.messages.frontend import CommandLineInterface
from babel.messages.pofile import read_po

from entrypoints.console.translation import CATALOGUE_FOLDER, LANGUAGES


def read_catalogue(path: Path, locale: str | None = None) -> Catalog:
    with path.open("rb") as file:
        return read_po(file, locale=locale)


@pytest.fixture(scope="module")
def message_template(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    """Extract the messages of templates, code and labels."""
    path = tmp_path_factory.mktemp("messages") / "messages.pot"
    CommandLineInterface().run(
        ["pybabel", "-q", "extract", "-F", "pyproject.toml", "-o", str(path), "entrypoints/console"]
    )
    return read_catalogue(path)


def test_messages_are_extracted(message_template: Catalog) -> None:
    """Templates, code and labels each have messages."""
    assert {"just now", "Every hour"} <= {str(message.id) for message in message_template}


@pytest.mark.parametrize("language", sorted(set(LANGUAGES) - {"en"}))
def test_every_message_is_translated(message_template: Catalog, language: str) -> None:
    catalogue = read_catalogue(CATALOGUE_FOLDER / language / "LC_MESSAGES" / "messages.po", language)
    found = {message.id: message for message in catalogue if message.id}
    assert not {message.id for message in message_template if message.id} ^ found.keys(), "run `make translations`"
    for message in found.values():
        forms = message.string if isinstance(message.string, tuple | list) else [message.string]
        assert all(forms) and not message.fuzzy, message.id
        assert not list(message.check(catalogue)), message.id
