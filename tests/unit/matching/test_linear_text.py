"""Reading an item takes linear time: four times the text takes at most six times as long."""

import gc
from collections.abc import Callable, Sequence
from time import thread_time

import pytest

from domain.matching import features, measures, words
from domain.matching.features import StoredVariant, compute_features_from_texts
from tests.unit.ingestion.test_linear_text import CACHES, SHAPES

pytestmark = pytest.mark.slow

SMALL, LARGE = 2 * 1024, 8 * 1024
MAX_GROWTH = 6.0
MIN_SECONDS = 0.03
"""CPU seconds below which a text is read fast enough, to exclude noise."""
QUADRATIC_GROWTH = (LARGE // SMALL) ** 2
"""Factor of the time of the large text if time were quadratic."""
MATCHING_SHAPES = (
    "1 / ", "1 / 1-", "1/1 ", "1-1/", "1/2-", "1-", "1 1/1 x ", "1 x", "1 /", "1  ", "1 1/", "1,1 / ", "w 1 d / ", "w1/", '1"-',
    "1' / ", "1 in. / ", "1 m x ", "1cm x ", "x1 ", "(1) ", "set / ", "set of ", "pack ", "1 pk", "qty ", "1 pieces ", "table ",
    "table and ", "table and 1 ", "table + 1 a", "+ 1 ", "for ", "a1/", "a-1.", "1.1a", "a'", "1a.", "ab1 ", "12345678 ", "1kg ", "pair ",
)  # fmt: skip
FRAMES = ("1{}a", "bolt set {} drawer 5 cm", "{}cm", "table and 1 {}")


def _read_title(text: str) -> object:
    return compute_features_from_texts("1", {"title": text})


def _read_all_fields(text: str) -> object:
    names = "title axes brand category collection description mpn sku colour finish price pack pieces currency".split()
    return compute_features_from_texts("1", dict.fromkeys(names, text))


def _read_stored_variant(text: str) -> object:
    variant = {"title": text, "axes": {"Size": text, "Colour": text, "Pack": text}, "materials": [text]}
    return features.compute_features(StoredVariant("1", "p", "s", {"title": text, "brand": text}, variant))


READERS: dict[str, Callable[[str], object]] = {
    "sizes": lambda text: measures.extract_sizes(words.normalise_characters(text)),
    "kind": words.find_kind,
    "length": lambda text: measures.parse_length_cell(text, "cm"),
    "words": lambda text: words.normalise_words(words.normalise_characters(text)),
    "parts": words.normalise_compound,
    "chunks": words.split_into_compounds,
    "code": words.normalise_item_code,
    "stem": words.extract_code_stem,
    "number": words.extract_model_number,
    "alike": lambda text: words.are_similar_words(text, text + "a"),
    "title": _read_title,
    "fields": _read_all_fields,
    "stored": _read_stored_variant,
}


def _measure_seconds(read: Callable[[str], object], text: str) -> float:
    for cached in (
        *CACHES,
        words.normalise_word,
        words.normalise_item_code,
        words.normalise_compound,
        words.are_similar_words,
        words.find_kind,
    ):
        cached.cache_clear()
    gc.disable()
    try:
        start = thread_time()
        read(text)
        return thread_time() - start
    finally:
        gc.enable()


def _build_text(frame: str, shape: str, size: int) -> str:
    return frame.format((shape * (size // len(shape) + 1))[:size])


def _is_superlinear(read: Callable[[str], object], frame: str, shape: str) -> bool:
    """Return whether time grows faster than the text; suspicious times are measured again."""
    first = _measure_seconds(read, _build_text(frame, shape, SMALL))
    if first * QUADRATIC_GROWTH < MIN_SECONDS or _measure_seconds(read, _build_text(frame, shape, LARGE)) <= max(
        MIN_SECONDS, MAX_GROWTH * first
    ):
        return False
    small = max(min(_measure_seconds(read, _build_text(frame, shape, SMALL)) for _ in range(3)), 1e-4)
    large = min(_measure_seconds(read, _build_text(frame, shape, LARGE)) for _ in range(3))
    return large > MIN_SECONDS and large / small > MAX_GROWTH


@pytest.mark.parametrize("tail", [" drawer 5 cm", " cm q", "/ q 5cm", " x 1 q"])
@pytest.mark.parametrize("unit", ["1 / ", "1 / 1-", "1/1 ", "1-1/", "1/2-", "1 1/1 x "])
def test_additional_numbers_do_not_double_the_time(unit: str, tail: str) -> None:
    """The text grows in small steps, so that exponential growth is detected early."""
    for count in (8, 10, 12, 14, 16, 24, 48, 96, 192):
        assert _measure_seconds(READERS["sizes"], "bolt set " + unit * count + tail) <= MIN_SECONDS, count


@pytest.mark.parametrize("name", READERS)
def test_time_is_linear_in_the_text(name: str) -> None:
    """Each frame is tested with a quarter of the shapes, others for each reader; together they cover all shapes."""
    _assert_linear_time(READERS[name], [*MATCHING_SHAPES, *SHAPES][list(READERS).index(name) % 8 :: 8])


@pytest.mark.soak
@pytest.mark.parametrize("name", READERS)
def test_time_is_linear_in_all_shapes_of_text(name: str) -> None:
    _assert_linear_time(READERS[name], [*MATCHING_SHAPES, *SHAPES])


def _assert_linear_time(read: Callable[[str], object], shapes: Sequence[str]) -> None:
    slow = [(frame, shape) for frame in FRAMES for shape in shapes if _is_superlinear(read, frame, shape)]
    assert not slow, slow[:5]
