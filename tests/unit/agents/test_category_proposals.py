"""Selection and proof of proposed category rules, and answers of models."""

from domain.agents.categories import (
    MAX_ANSWERS,
    CategoryAnswer,
    CategoryAnswers,
    CategoryOrigin,
    ProposedCategory,
    build_answer_schema,
    count_paths_without_category,
    is_exact_name,
    parse_answers,
    prove_categories,
    select_categories,
)
from domain.catalogue import categories
from domain.catalogue.category_rules import CategoryPath, CategoryRule, ProductCategory
from domain.proposals.model import ProofCounts, ProofSample, Risk
from entrypoints.operations.validation import Validator
from tests.support.builders import MOMENT

BY_SLUG = {entry.slug: entry.id for entry in categories.category_by_id().values()}
CHAIRS, SOFAS = BY_SLUG["chairs"], BY_SLUG["sofas"]


def _product(id: str, path: CategoryPath, category: str | None = None) -> ProductCategory:
    return ProductCategory(id, id, path, category, category)


def _candidate(*path: str, origin: CategoryOrigin = CategoryOrigin.NAME, category: str = CHAIRS) -> ProposedCategory:
    return ProposedCategory(path, category, origin)


def test_only_the_nearest_candidates_of_products_without_a_category_are_selected() -> None:
    paths = count_paths_without_category(
        [_product("1", ("A", "B", "C")), _product("2", ("D",), CHAIRS), _product("3", ())]
    )
    candidates = [_candidate("A"), _candidate("A", "B"), _candidate("D"), _candidate("E")]
    assert select_categories(paths, candidates) == [_candidate("A", "B")]


def test_the_proof_counts_products_and_shows_each_path_once() -> None:
    products = [_product("1", ("A",)), _product("2", ("A",)), _product("3", ("Z",)), _product("4", ("Q",), SOFAS)]
    proof, risk = prove_categories("run_1", products, (), [_candidate("A")])
    assert (proof.before, proof.after) == (ProofCounts(4, 1, 3), ProofCounts(4, 3, 1))
    assert proof.samples == (ProofSample("A", None, CHAIRS),) and risk == Risk.LOW


def test_a_moved_product_or_an_uncertain_origin_has_no_low_risk() -> None:
    moved = [_product("1", ("A",)), _product("2", ("A",), SOFAS)]
    assert prove_categories(None, moved, (), [_candidate("A")])[1] == Risk.NORMAL
    for origin in (CategoryOrigin.MODEL, CategoryOrigin.WORDS):
        assert prove_categories(None, [_product("1", ("A",))], (), [_candidate("A", origin=origin)])[1] == Risk.NORMAL


def test_rules_that_exist_keep_applying() -> None:
    products = [_product("1", ("A", "B"), SOFAS), _product("2", ("A",))]
    _, risk = prove_categories(None, products, [CategoryRule(("A", "B"), SOFAS)], [_candidate("A")])
    assert risk == Risk.LOW


def test_a_name_is_exact_ignoring_case_and_accents() -> None:
    assert is_exact_name(("Home", "CHAIRS"), CHAIRS) and not is_exact_name(("Chairs", "Oak chairs"), CHAIRS)


def test_answers_are_limited_to_paths_and_categories() -> None:
    paths: list[CategoryPath] = [("A",), ("B",), ("C",)]
    schema = Validator(build_answer_schema(paths))
    good = {"answers": [{"index": 0, "category": CHAIRS}, {"index": 2, "category": None}]}
    assert schema.find_field_errors(good) == ()
    for index, category in ((3, CHAIRS), (0, "ctg_unknown"), (-1, None)):
        assert schema.find_field_errors({"answers": [{"index": index, "category": category}]})
    assert parse_answers(good, paths) == [
        CategoryAnswer(("A",), CHAIRS),
        CategoryAnswer(("B",)),
        CategoryAnswer(("C",)),
    ]


def test_contradictory_answers_count_as_unknown() -> None:
    value = {"answers": [{"index": 0, "category": CHAIRS}, {"index": 0, "category": SOFAS}]}
    assert parse_answers(value, [("A",)]) == [CategoryAnswer(("A",))]


def test_the_oldest_answers_are_forgotten() -> None:
    answers = CategoryAnswers("src_1", MOMENT, MOMENT).with_answers(
        [CategoryAnswer((str(n),)) for n in range(MAX_ANSWERS)], MOMENT
    )
    after = answers.with_answers([CategoryAnswer(("new",))], MOMENT)
    assert len(after.answers) == MAX_ANSWERS and after.answers[-1].path == ("new",) and after.answers[0].path == ("1",)
