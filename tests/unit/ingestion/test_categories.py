"""Categories of the taxonomy that a source states."""

from domain.catalogue import categories
from domain.ingestion.columns.plan import ReadPlan
from domain.ingestion.mapping.proposal import propose_column_mapping
from domain.ingestion.model import FeedSettings
from domain.ingestion.normalisation import normalise_rows
from domain.ingestion.records import parse_record

SOFAS = categories.find_id_by_google_id(460)


def _read_category(cell: str) -> str | None:
    headers = ("id", "title", "google product category", "price")
    plan = ReadPlan(
        propose_column_mapping(headers, [["a", "Sofa", cell, "10.00 USD"]], FeedSettings("usd")), FeedSettings("usd")
    )
    statement, _ = normalise_rows("a", [(2, ["a", "Sofa", cell, "10.00 USD"])], plan)
    return statement.data.get("category")


def test_a_google_id_with_the_same_meaning_is_the_category() -> None:
    assert SOFAS is not None
    assert _read_category("460") == SOFAS


def test_a_path_with_an_unambiguous_end_is_a_category() -> None:
    assert _read_category("Furniture > Sofas") == SOFAS


def test_other_ids_and_paths_are_not_categories() -> None:
    assert _read_category("1") is None
    assert _read_category("Furniture > Sofas & Chairs") is None


def test_a_pushed_category_must_be_in_the_taxonomy() -> None:
    def push(category: str) -> tuple[object, list[str]]:
        record = {
            "product": {"external_id": "a", "title": "Sofa", "category": category},
            "variants": [{"external_id": "b"}],
        }
        statement, problems = parse_record(record, FeedSettings("usd"))
        assert statement is not None
        return statement.data.get("category"), [problem.problem for problem in problems]

    assert push(str(SOFAS)) == (SOFAS, [])
    assert push("ctg_0000000000000000000000") == (None, ["unreadable"])
