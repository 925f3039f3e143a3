"""`joinery match` on files."""

import csv
import json
from pathlib import Path

import pytest

from entrypoints.cli.main import main

LEFT = "id;Name;Manufacturer;Model-No;EAN;Shelf place\n1;Fjord sofa grey;Aster;FS-2201;4006381333931;A7\n2;Fjord sofa green;Aster;FS-2202;;A8\n"
RIGHT = "id,title,brand,mpn,gtin\nx,Aster FJORD Sofa Gry,Aster,FS2201,4006381333931\ny,Aster Fjord couch grn (set of 2),Aster,FS2202,\n"


def run(folder: Path, left: str | bytes = LEFT, right: str = RIGHT, *more: str) -> int:
    (folder / "l.csv").write_bytes(left if isinstance(left, bytes) else left.encode())
    (folder / "r.csv").write_text(right, "utf-8")
    return main(
        [
            "match",
            "--left",
            str(folder / "l.csv"),
            "--right",
            str(folder / "r.csv"),
            "--out",
            str(folder / "out.csv"),
            *more,
        ]
    )


def test_pairs_and_their_evidence_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, LEFT, RIGHT, "--explain", str(tmp_path / "why.jsonl"), "--least", "0.001") == 0
    with (tmp_path / "out.csv").open(encoding="utf-8") as file:
        rows = {(row["idA"], row["idB"]): float(row["probability"]) for row in csv.DictReader(file)}
    assert rows["1", "x"] > 0.9 and rows["2", "y"] < 0.5
    explained = {
        (o["idA"], o["idB"]): o for o in map(json.loads, (tmp_path / "why.jsonl").read_text("utf-8").splitlines())
    }
    assert explained.keys() == rows.keys()
    assert explained["2", "y"]["conflicts"] == ["pieces"]
    for pair, explanation in explained.items():
        odds = 2 ** (explanation["prior"] + sum(part["weight"] for part in explanation["evidence"]))
        assert odds / (1 + odds) == pytest.approx(rows[pair], abs=1e-6)
    gtin = next(part for part in explained["1", "x"]["evidence"] if part["comparison"] == "gtin")
    assert (gtin["level"], gtin["left"], gtin["right"]) == ("same", "4006381333931", "4006381333931")
    errors = capsys.readouterr().err
    assert "ignored columns: Shelf place" in errors
    assert f"from 2 items in {tmp_path / 'l.csv'} and 2 items in {tmp_path / 'r.csv'}." in errors


@pytest.mark.parametrize(
    ("left", "expected"),
    [
        ("name\nSofa\n", "has no column `id`. Its columns are: name"),
        ("", "has no column `id`. Its columns are: none"),
        ("id,title\n1,Sofa\n1,Chair\n", "the ID 1 in row 3 is a duplicate"),
        ("id,title\n1,Sofa\n,Chair\n", "row 3 has no ID"),
        ("id,price\n1,5\n", "neither a title (or name) nor a code"),
        (b"id,title\n1,S\xffofa\n", "is not a CSV file in UTF-8"),
    ],
)
def test_unreadable_input_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], left: str | bytes, expected: str
) -> None:
    assert run(tmp_path, left) == 1
    assert expected in capsys.readouterr().err
    assert not (tmp_path / "out.csv").exists()


def test_missing_files_and_folders_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(
            [
                "match",
                "--left",
                str(tmp_path / "no.csv"),
                "--right",
                str(tmp_path / "no.csv"),
                "--out",
                str(tmp_path / "out.csv"),
            ]
        )
        == 1
    )
    assert "no.csv could not be read: No such file" in capsys.readouterr().err
    assert run(tmp_path, LEFT, RIGHT, "--explain", str(tmp_path / "none" / "why.jsonl")) == 1
    assert "could not be written: No such file" in capsys.readouterr().err


def test_the_order_of_rows_does_not_change_the_result(tmp_path: Path) -> None:
    run(tmp_path)
    first = (tmp_path / "out.csv").read_bytes()
    header, *rows = RIGHT.splitlines()
    run(tmp_path, LEFT, "\n".join([header, *reversed(rows)]))
    assert (tmp_path / "out.csv").read_bytes() == first
