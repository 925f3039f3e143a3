"""The editable tables in `domain/ingestion/data` refer to existing fields, concepts and kinds of values."""

from domain.ingestion.data import load_csv_rows, load_toml, split_phrases
from domain.ingestion.mapping.evidence import _ADJUSTMENTS, _KINDS, _VALUES, CONTRADICTED
from domain.ingestion.vocabulary.fields import is_field, parse_declared_field
from domain.ingestion.vocabulary.header_meanings import PHRASES, normalise_words, split_into_words

OWN = {"axes", "media_alt", "media_position", "option_name.0", "option_value.0", CONTRADICTED}


def _find_unknown_names(*names: str) -> set[str]:
    return {name for name in names if not is_field(parse_declared_field(name)[0]) and name not in OWN}


def test_phrases_are_normalised_and_refer_to_fields() -> None:
    assert not _find_unknown_names(*(field for options in PHRASES.values() for field, _ in options))
    assert not {phrase for phrase in PHRASES if normalise_words(phrase.replace("#", "1")) != phrase.replace("#", "1")}


def test_rules_refer_to_fields_and_concepts() -> None:
    concepts, used = set(load_toml("lexicon")), set[str]()
    for row in load_csv_rows("rules"):
        assert not _find_unknown_names(*(sense.rpartition(":")[0] for sense in row["means"].split())), row
        used |= {*row["needs"].replace("+", "|").split("|"), *row["allows"].split()} - {"*"}
    assert used <= concepts


def test_evidence_refers_to_fields_and_kinds_of_values() -> None:
    for row in _ADJUSTMENTS:
        named = [*row.first, *row.without, *row.scores, *filter(None, (row.becomes, row.adds))]
        assert not _find_unknown_names(*named, *(name for names in row.among for name in names.split("|"))), row
    bounds = [*_ADJUSTMENTS, *(shares for expected in _VALUES.values() for shares in expected)]
    assert {kind for one in bounds for kind in (*one.least, *one.below)} <= {*_KINDS, "count"}
    assert not _find_unknown_names(*(name for name in _VALUES if "*" not in name))


def test_abbreviations_and_kinds_of_tables_refer_to_words_and_fields() -> None:
    for text in load_toml("abbreviations")["words"].values():
        assert all(word.concepts for word in split_into_words(normalise_words(text))), text
    for row in load_toml("tables")["tables"]:
        named = [*row.get("fields", {}), *split_phrases(row.get("has", "")), *split_phrases(row.get("lacks", ""))]
        assert not _find_unknown_names(*named), row
        texts = [row["headers"], *row.get("fields", {}).values()]
        assert all(normalise_words(header) == header for text in texts for header in split_phrases(text)), row


def test_words_are_listed_once_for_each_concept() -> None:
    for concept, text in load_toml("lexicon").items():
        words = split_phrases(text)
        assert len(words) == len(set(words)), concept
