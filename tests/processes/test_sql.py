"""`joinery sql` prints the statements of the stores."""

import pytest

from adapters.postgres.unit_of_work import TABLES
from entrypoints.cli.main import main


def test_every_list_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql"]) == 0
    printed = capsys.readouterr().out
    assert {line.split()[0] for line in printed.splitlines()} == {
        "products",
        "offers",
        *(table.name for table in TABLES),
    }


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_the_list_of_a_table_is_printed(table: object, capsys: pytest.CaptureFixture[str]) -> None:
    name = table.name  # type: ignore[attr-defined]
    assert main(["sql", name, "--filter", "id", "--after", "--limit", "7"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:] == ["    AND id = %(id)s", "    AND id < %(page_key)s", "ORDER BY id DESC LIMIT 8"]
    assert f"FROM {name} WHERE org = %(org)s AND livemode = %(livemode)s" in lines[0]


def test_a_search_is_printed_completely(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", "products", "--filter", "q", "--filter", "status", "--before"]) == 0
    printed = capsys.readouterr().out
    assert "%(word0)s" in printed and "%(code)s" in printed and "--?" not in printed
    assert printed.count("p.status = %(status)s") == 2


@pytest.mark.parametrize("wrong", [["sofas"], ["products", "--filter", "colour"]])
def test_an_unknown_list_is_reported(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", *wrong]) != 0
    assert "is not the name of a list" in capsys.readouterr().err or wrong[0] == "products"
