"""Category rules: the nearest rule applies, a rule takes precedence over the source, and omitted paths are counted."""

from hypothesis import given
from hypothesis import strategies as st

from domain.catalogue.category_rules import (
    MAX_LISTED_PATHS,
    MAX_PATH_LEVELS,
    MAX_PATHS_CHARS,
    CategoryAssigner,
    CategoryPaths,
    CategoryRule,
    CategoryRules,
    RuleChange,
    describe_change,
    list_source_categories,
)
from tests.support.builders import MOMENT

PATHS = st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map(tuple)
RULES = st.dictionaries(PATHS, st.sampled_from(["ctg_1", "ctg_2"]), max_size=6)
NONE = CategoryRules("src_1", MOMENT, MOMENT)


def _create_assigner(rules: dict[tuple[str, ...], str]) -> CategoryAssigner:
    return CategoryAssigner(CategoryRule(path, category) for path, category in rules.items())


@given(RULES, PATHS, st.sampled_from([None, "ctg_9"]))
def test_the_nearest_rule_takes_precedence_over_the_source(
    rules: dict[tuple[str, ...], str], path: tuple[str, ...], stated: str | None
) -> None:
    covering = [above for above in rules if path[: len(above)] == above]
    expected = rules[max(covering, key=len)] if covering else stated
    filing = _create_assigner(rules)
    assert (
        filing.resolve_category(path, stated)
        == (filing.find_exact_category(path) or filing.find_inherited_category(path) or stated)
        == expected
    )
    assert CategoryAssigner().resolve_category(path, stated) == stated


@given(RULES, PATHS | st.just(()), st.sampled_from([None, "ctg_9"]), RULES)
def test_reassigning_categories_gives_the_same_result_as_the_first_assignment(
    before: dict[tuple[str, ...], str], path: tuple[str, ...], stated: str | None, after: dict[tuple[str, ...], str]
) -> None:
    given_ = {
        "title": "Chair",
        **({"category_path": list(path)} if path else {}),
        **({"category": stated} if stated else {}),
    }
    at_first, expected = dict(given_), dict(given_)
    assert (
        _create_assigner(before).assign_category(at_first)
        == _create_assigner(after).assign_category(expected)
        == stated
    )
    assert _create_assigner(after).with_reassigned_category(at_first, stated) == expected


def test_rules_are_set_removed_and_kept() -> None:
    first = NONE.with_changes(MOMENT, [RuleChange(("b",), "ctg_1"), RuleChange(("a",), "ctg_1")])
    after = first.with_changes(
        MOMENT, [RuleChange(("a",), None), RuleChange(("c",), "ctg_2"), RuleChange(("x",), None)]
    )
    assert after.rules == (CategoryRule(("b",), "ctg_1"), CategoryRule(("c",), "ctg_2")) and after.version == 3
    change = describe_change(first, after)
    assert change.before == {"rules": [{"path": ["a"], "category": "ctg_1"}]}
    assert change.after == {"rules": [{"path": ["c"], "category": "ctg_2"}]}


@given(st.dictionaries(PATHS, st.integers(1, 9), max_size=8), RULES)
def test_every_path_and_its_ancestors_are_listed_with_their_products(
    products: dict[tuple[str, ...], int], rules: dict[tuple[str, ...], str]
) -> None:
    held = NONE.with_changes(MOMENT, [RuleChange(path, category) for path, category in rules.items()])
    found, left_out = list_source_categories(CategoryPaths(products, 0), CategoryAssigner(held.rules), held)
    assert left_out == 0
    assert [one.path for one in found] == sorted(
        {path[:length] for path in products for length in range(1, len(path) + 1)} | rules.keys()
    )
    for one in found:
        assert one.products == sum(n for path, n in products.items() if path[: len(one.path)] == one.path)
        assert one.rule == rules.get(one.path)


def test_paths_beyond_the_limit_are_counted() -> None:
    products = {("top", str(number)): 1 for number in range(MAX_LISTED_PATHS + 10)}
    found, left_out = list_source_categories(CategoryPaths(products, 5), CategoryAssigner(), None)
    assert len(found) == MAX_LISTED_PATHS and left_out == 5 + 11


def test_levels_that_no_rule_can_have_are_not_listed() -> None:
    deep = tuple("abcdefghijklmnopqrstuvwxyz")
    found, left_out = list_source_categories(CategoryPaths({deep: 3}, 0), CategoryAssigner(), None)
    assert [one.path for one in found] == [deep[:length] for length in range(1, MAX_PATH_LEVELS + 1)]
    assert {one.products for one in found} == {3} and left_out == 1


def test_listed_paths_have_a_bounded_number_of_characters() -> None:
    long = "x" * (MAX_PATHS_CHARS // 4)
    found, left_out = list_source_categories(
        CategoryPaths({(f"{number}{long}",): 1 for number in range(5)}, 0), CategoryAssigner(), None
    )
    assert len(found) == 3 and left_out == 2
