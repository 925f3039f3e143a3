"""The fast reader of the most common sizes agrees with the full grammar, also for texts that resemble them."""

from hypothesis import given, settings
from hypothesis import strategies as st

from domain.ingestion.values.dimensions import parse_by_grammar, parse_common_size, parse_dimensions

NUMBERS = st.one_of(
    st.integers(1, 9999).map(str),
    st.decimals(1, 900, places=2, allow_nan=False).map(str),
    st.tuples(
        st.integers(1, 300), st.integers(1, 17), st.sampled_from([2, 4, 8, 16]), st.sampled_from([" ", " ", "-", "."])
    ).map(lambda p: f"{p[0]}{p[3]}{p[1]}/{p[2]}"),
    st.sampled_from(["0", "0.5", "1.250", "1,5", "007", "12-14"]),
)
UNITS = st.sampled_from(['"', " in", "in", "cm", " cm", "mm", "", "'"])
AXES = st.sampled_from(["W", "D", "H", "L", " W", " H", ""])
JOINS = st.sampled_from([" X ", "x", " x ", "X", ", "])


@settings(deadline=None, max_examples=400)
@given(
    st.lists(st.tuples(NUMBERS, AXES), min_size=2, max_size=3),
    UNITS,
    st.booleans(),
    JOINS,
    st.sampled_from([None, "in", "cm"]),
    st.sampled_from(["", "bed", "rug", "pillow"]),
    st.sampled_from(["", "lwh", "trade"]),
    st.sampled_from(["auto", "comma", "dot"]),
)
def test_the_fast_reader_agrees_with_the_grammar(
    figures: list[tuple[str, str]], own: str, each: bool, join: str, unit: str | None, kind: str, order: str, mark: str
) -> None:
    if each:
        text = join.join(f"{number}{own}{axis}" for number, axis in figures)
    else:
        text = join.join(f"{number}{axis}" for number, axis in figures) + f" {own.strip()}"
    assert parse_dimensions(text, unit, kind, order, mark) == parse_by_grammar(text, unit, kind, order, mark)


@settings(deadline=None, max_examples=100)
@given(
    st.tuples(st.integers(1, 400), st.integers(1, 400), st.integers(1, 400)),
    st.permutations(["W", "D", "H"]),
    st.sampled_from(['"', "cm"]),
    st.sampled_from([" X ", "x", " x "]),
)
def test_common_sizes_are_read_by_the_fast_reader(
    figures: tuple[int, int, int], axes: list[str], unit: str, join: str
) -> None:
    text = join.join(f"{figure}{unit}{axis}" for figure, axis in zip(figures, axes, strict=True))
    assert parse_common_size(text, "") == getattr(
        parse_by_grammar(text, None, "", "", "auto").value, "dimensions", None
    )
    assert parse_common_size(text, "") is not None
