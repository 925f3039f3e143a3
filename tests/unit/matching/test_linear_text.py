"""An item is read in time linear in its text: four times the text takes at most six times as long, whatever it contains."""

import gc
from collections.abc import Callable, Sequence
from time import thread_time

import pytest

from domain.matching import features, measures, words
from domain.matching.features import StoredVariant, compute_features_from_texts
from tests.unit.ingestion.test_linear_text import CACHES, SHAPES

pytestmark = pytest.mark.slow

SMALL, LARGE = 2 * 1024, 8 * 1024
MOST = 6.0
FLOOR = 0.03
"""CPU seconds below which a text is read fast enough, however a quarter of it compares."""
GROWTH = (LARGE // SMALL) ** 2
"""How many times as long the large text would take if time grew with its square."""
OWN = (
    "1 / ", "1 / 1-", "1/1 ", "1-1/", "1/2-", "1-", "1 1/1 x ", "1 x", "1 /", "1  ", "1 1/", "1,1 / ", "w 1 d / ", "w1/", '1"-',
    "1' / ", "1 in. / ", "1 m x ", "1cm x ", "x1 ", "(1) ", "set / ", "set of ", "pack ", "1 pk", "qty ", "1 pieces ", "table ",
    "table and ", "table and 1 ", "table + 1 a", "+ 1 ", "for ", "a1/", "a-1.", "1.1a", "a'", "1a.", "ab1 ", "12345678 ", "1kg ", "pair ",
)  # fmt: skip
FRAMES = ("1{}a", "bolt set {} drawer 5 cm", "{}cm", "table and 1 {}")


def _titled(text: str) -> object:
    return compute_features_from_texts("1", {"title": text})


def _all_fields(text: str) -> object:
    names = "title axes brand collection description mpn sku colour finish price pack pieces currency".split()
    return compute_features_from_texts("1", dict.fromkeys(names, text))


def _stored(text: str) -> object:
    variant = {"title": text, "axes": {"Size": text, "Colour": text, "Pack": text}, "materials": [text]}
    return features.compute_features(StoredVariant("1", "p", "s", {"title": text, "brand": text}, variant))


READERS: dict[str, Callable[[str], object]] = {
    "sizes": lambda text: measures.extract_sizes(words.normalise_characters(text)),
    "figure": measures.parse_decimal_or_fraction,
    "length": lambda text: measures.parse_length_cell(text, "cm"),
    "words": lambda text: words.normalise_words(words.normalise_characters(text)),
    "parts": words.normalise_compound,
    "chunks": words.split_into_compounds,
    "code": words.normalise_item_code,
    "stem": words.remove_colour_suffix,
    "number": words.extract_model_number,
    "alike": lambda text: words.are_similar_words(text, text + "a"),
    "title": _titled,
    "fields": _all_fields,
    "stored": _stored,
}


def _seconds(of: Callable[[str], object], text: str) -> float:
    for kept in (
        *CACHES,
        words.normalise_word,
        words.normalise_item_code,
        words.normalise_compound,
        words.are_similar_words,
    ):
        kept.cache_clear()
    gc.disable()
    try:
        begun = thread_time()
        of(text)
        return thread_time() - begun
    finally:
        gc.enable()


def _text(frame: str, shape: str, size: int) -> str:
    return frame.format((shape * (size // len(shape) + 1))[:size])


def _grows(of: Callable[[str], object], frame: str, shape: str) -> bool:
    """Whether time grows with more than the text, measured again where it seems so."""
    first = _seconds(of, _text(frame, shape, SMALL))
    if first * GROWTH < FLOOR or _seconds(of, _text(frame, shape, LARGE)) <= max(FLOOR, MOST * first):
        return False
    small = max(min(_seconds(of, _text(frame, shape, SMALL)) for _ in range(3)), 1e-4)
    large = min(_seconds(of, _text(frame, shape, LARGE)) for _ in range(3))
    return large > FLOOR and large / small > MOST


@pytest.mark.parametrize("tail", [" drawer 5 cm", " cm q", "/ q 5cm", " x 1 q"])
@pytest.mark.parametrize("unit", ["1 / ", "1 / 1-", "1/1 ", "1-1/", "1/2-", "1 1/1 x "])
def test_no_figure_more_doubles_the_time(unit: str, tail: str) -> None:
    """Small steps first, so that what grows by powers is found before it holds everything up."""
    for count in (8, 10, 12, 14, 16, 24, 48, 96, 192):
        assert _seconds(READERS["sizes"], "bolt set " + unit * count + tail) <= FLOOR, count


@pytest.mark.parametrize("name", READERS)
def test_time_grows_with_the_text(name: str) -> None:
    """Every fourth shape in each frame, other ones for each reader: together they see all."""
    _grows_with_no_shape(READERS[name], [*OWN, *SHAPES][list(READERS).index(name) % 8 :: 8])


@pytest.mark.soak
@pytest.mark.parametrize("name", READERS)
def test_time_grows_with_any_text(name: str) -> None:
    _grows_with_no_shape(READERS[name], [*OWN, *SHAPES])


def _grows_with_no_shape(of: Callable[[str], object], shapes: Sequence[str]) -> None:
    slow = [(frame, shape) for frame in FRAMES for shape in shapes if _grows(of, frame, shape)]
    assert not slow, slow[:5]
