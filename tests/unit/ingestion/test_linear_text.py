"""Reading a text takes linear time: four times the text takes at most six times as long.

Readers are found automatically: every public function of `domain.ingestion` whose first argument is a text, and every
field of a column. A reader with further arguments fails until SAMPLES defines values for their types.
"""

import gc
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from time import thread_time
from types import ModuleType
from typing import Any

import pytest

import domain.ingestion
from domain.catalogue import search_terms
from domain.ingestion.columns.plan import ReadPlan
from domain.ingestion.mapping.evidence import ValueStatistics, compute_value_statistics
from domain.ingestion.mapping.proposal import propose_column_mapping
from domain.ingestion.model import Column, FeedSettings, HeaderMapping
from domain.ingestion.normalisation import normalise_rows
from domain.ingestion.vocabulary import fields
from domain.ingestion.vocabulary.header_meanings import HeaderMeaning, find_header_meanings

pytestmark = pytest.mark.slow

SMALL, LARGE = 16 * 1024, 64 * 1024
MAX_GROWTH = 8.0
MIN_SECONDS = 0.03
"""CPU seconds below which 64 KiB are read fast enough, to exclude noise."""
QUADRATIC_GROWTH = (LARGE // SMALL) ** 2
"""Factor of the time of the large text if time were quadratic."""

RUNS = (
    " \t\n\r\xa0\u3000\u200b17aZéÃß½<>»|/,;:×x\"'()[]{}&-–.+*$%#_\\=!?~\0\x9d\ufffd😀"
    "　 "  # an ideographic space and a hair space
)
REPEATED = (
    "1 1/2 ", "1/2", "<a", "<a>", "<<a", "</", "</p", "<!--", "<!-->", "<![", "<![CDATA[", "<?", "<p>a</p>", "<script>",
    "<script></script>", "<b a='", '<b a="', '<b a="x" ', "=\"'>", "&#", "&#1", "&amp", "&amp;", " > ", "> ", " | ", " / ",
    "/ ", ", ", "; ", ": ", "a:b|", "a : b | ", "a :  |", " x ", "1x1", "1 x 1 x ", '1"', '1" x ', '"1" x ', "(1)", "(1 ", "((1",
    "a (1 x 1) ", "a: 1 x 1 (h 1) ", "$1 ", "1,", "1.1.", ".1", "http://", "http://a/b ", "https://a.b/c.jpg,", "//a,", " ,", " ;",
    "W 1 ", "1 w ", "1mm ", "1 ft ", "1' 2\" ", "1-2 ", "Article no: 123.456 ", "Package(s): 1 ", "Width: 1 cm ", "- \n", "\n- ",
    " \n", "\n/", "\r\n", "a b ", "A-1 (x2), ", " + ", " & ", "x 2 ", "(product.metafields.", "variants[", "fooBar", "aA ",
    "made in ", "1e9 ", "f2057 ", "bed ", "12/12/", "jan 1 ", "Seat height: 1 ", "up to ", "in stock ", "[a ",
)  # fmt: skip
FRAME = "1{}a"
SHAPES = [*RUNS, *REPEATED]

SAMPLES: dict[Any, Any] = {
    str: "usd",
    bool: True,
    int: 0,
    set[str]: {"a"},
    Iterable[str]: ["a"],
    Sequence[str]: ["1 x 1"],
    Sequence[str | None]: ["sku"],
    Sequence[Sequence[str]]: [["a"]],
    Sequence[Sequence[Any]]: [["a"]],
    tuple[HeaderMeaning, ...]: find_header_meanings("Size"),
    Sequence[tuple[HeaderMeaning, ...]]: [find_header_meanings("Qty")],
    Sequence[HeaderMeaning]: find_header_meanings("Size"),
    HeaderMeaning: find_header_meanings("Size")[0],
    ValueStatistics: compute_value_statistics(["1 x 1", "2 x 2"]),
    ValueStatistics | None: compute_value_statistics(["1 x 1", "2 x 2"]),
    Mapping[str, str]: {"unit": "in"},
    FeedSettings: FeedSettings(currency="usd", stream="stock"),
}
"""Values of further arguments by type."""
EXCLUDED = frozenset(
    (
        "compute_check_digit",
        "has_valid_check_digit",
        "normalise_rows",
        "parse_price_number",
        "load_word_set",
    )
)
"""Functions of a text that was already validated, or of names of packaged files."""
FIELDS = sorted(
    {
        *fields.PRODUCT, *fields.VARIANT, *fields.OFFER, "category_path.0", "option_name.0", "option_value.0", "axes.Size",
        "cartons.0.dimensions", "cartons.0.weight", "cartons.0.count", "incoming.0.quantity", "incoming.0.eta", "dimensions.width",
        *(f"compliance.{name}" for name in fields.COMPLIANCE), *(f"rug.{name}" for name in fields.RUG_PARTS),
    }
)  # fmt: skip

VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
TextReader = Callable[[str], object]


def _import_modules() -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(domain.ingestion.__path__, "domain.ingestion."):
        if found.name.rpartition(".")[2] not in ("data", "destination", "ports"):  # packaged files and settings
            yield importlib.import_module(found.name)
    yield search_terms


MODULES = list(_import_modules())
CACHES = [cached for module in MODULES for cached in vars(module).values() if hasattr(cached, "cache_clear")]


def _find_functions() -> Iterator[tuple[str, TextReader]]:
    for module in MODULES:
        for name, member in vars(module).items():
            function = inspect.unwrap(member) if callable(member) else None
            if name.startswith("_") or name in EXCLUDED or not inspect.isfunction(function):
                continue
            parameters = list(inspect.signature(function).parameters.values())
            if function.__module__ != module.__name__ or not parameters:
                continue
            first, *others = parameters
            many = first.annotation in (Sequence[str], list[str])
            if first.annotation is str or many:
                needed = (other for other in others if other.default is other.empty and other.kind not in VARIADIC)
                rest = [_get_sample(name, other) for other in needed]
                yield f"{module.__name__}.{name}", _bind_arguments(member, rest, many)


def _get_sample(name: str, parameter: inspect.Parameter) -> Any:
    assert parameter.annotation in SAMPLES, f"define a sample for {parameter} of {name} in SAMPLES"
    return SAMPLES[parameter.annotation]


def _bind_arguments(function: Callable[..., object], rest: list[Any], many: bool) -> TextReader:
    return lambda text: function([text] if many else text, *rest)


def _create_cell_reader(name: str) -> TextReader:
    settings = FeedSettings(currency="usd")
    plan = ReadPlan(HeaderMapping(("H",), (Column(0, "H", name, {}),), ()), settings)
    return lambda text: normalise_rows("k", [(2, [text])], plan)


def _propose_mapping(text: str) -> object:
    headers = [
        "SKU",
        "Title",
        "Size",
        "Qty",
        "ETA",
        "Price",
        "Weight",
        "Colour",
        "NJ",
        "Type",
        "Image",
        "Category",
        text,
    ]
    return propose_column_mapping(headers, [[text] * len(headers)], FeedSettings(currency="usd", stream="stock"))


READERS: dict[str, TextReader] = {
    **dict(_find_functions()),
    **{f"column {name}": _create_cell_reader(name) for name in FIELDS},
    "mapping": _propose_mapping,
}


def _measure_seconds(read: TextReader, text: str) -> float:
    for cached in CACHES:
        cached.cache_clear()
    gc.disable()  # the duration of a collection depends on the live objects, not on the reader
    try:
        start = thread_time()
        read(text)
        return thread_time() - start
    finally:
        gc.enable()


def _build_text(shape: str, size: int) -> str:
    return FRAME.format((shape * (size // len(shape) + 1))[:size])


def test_readers_are_found() -> None:
    found = {name.rpartition(".")[2] for name in READERS}
    assert {
        "parse_dimensions",
        "split_category_path",
        "parse_image_urls",
        "parse_attributes",
        "strip_markup",
        "interpret_header",
        "find_header_meanings",
        "find_location_in_header",
    } <= found
    assert len(READERS) > 120


@pytest.mark.parametrize("name", READERS)
def test_time_is_linear_in_the_text(name: str) -> None:
    """Each reader is tested with a ninth of the shapes, others for each reader; together they cover all shapes."""
    _assert_linear_time(READERS[name], SHAPES[list(READERS).index(name) % 9 :: 9])


@pytest.mark.soak
@pytest.mark.parametrize("name", READERS)
def test_time_is_linear_in_all_shapes_of_text(name: str) -> None:
    _assert_linear_time(READERS[name], SHAPES)


def _assert_linear_time(read: Any, shapes: Sequence[str]) -> None:
    slow = []
    for shape in shapes:
        first = _measure_seconds(read, _build_text(shape, SMALL))
        if first * QUADRATIC_GROWTH < MIN_SECONDS or _measure_seconds(read, _build_text(shape, LARGE)) <= max(
            MIN_SECONDS, MAX_GROWTH * first
        ):
            continue
        small = max(min(_measure_seconds(read, _build_text(shape, SMALL)) for _ in range(3)), 1e-4)
        large = min(_measure_seconds(read, _build_text(shape, LARGE)) for _ in range(3))
        if large > MIN_SECONDS and large / small > MAX_GROWTH:
            slow.append(f"{shape!r}: {small * 1000:.0f} ms, then {large * 1000:.0f} ms")
            if len(slow) > 2:
                break
    assert not slow, slow
