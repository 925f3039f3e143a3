"""The attack on statistics finds what a threshold on each answer alone would disclose."""

from tests.support.disclosure_attack import LinearForm, compute_rank, find_disclosed

ORGS = [f"org_{number}" for number in range(7)]


def build_form(*parts: tuple[str, int]) -> LinearForm:
    return {(ORGS[org], day): 1 for day, orgs in parts for org in range(orgs)}


def test_the_rank_is_exact() -> None:
    assert compute_rank([(1, 2), (2, 4)]) == 1
    assert compute_rank([(1, 2, 3), (4, 5, 6), (7, 8, 9), (0, 0, 1)]) == 3
    assert compute_rank([]) == 0


def test_overlapping_answers_disclose_one_organisation() -> None:
    week, next_week = build_form(("mon", 6), ("tue", 6)), build_form(("mon", 6), ("tue", 6), ("wed", 1))
    assert find_disclosed([week], ORGS, 4) == []
    assert {ORGS[0]} in [{*subset} for subset in find_disclosed([week, next_week], ORGS, 1)]


def test_three_answers_disclose_what_two_do_not() -> None:
    total, first, second = build_form(("a", 6), ("b", 6), ("c", 2)), build_form(("a", 6)), build_form(("b", 6))
    assert find_disclosed([total, first], ORGS, 4) == []
    assert [{*subset} >= {*ORGS[:2]} for subset in find_disclosed([total, first, second], ORGS, 4)]


def test_disjoint_answers_of_five_organisations_disclose_nothing() -> None:
    cells = [build_form(("a", 5)), build_form(("b", 6)), build_form(("c", 7))]
    sums = [{**cells[0], **cells[1]}, {**cells[1], **cells[2]}, {**cells[0], **cells[1], **cells[2]}]
    assert find_disclosed([*cells, *sums], ORGS, 4) == []
