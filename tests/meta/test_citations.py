"""What docstrings and docs cite of docs/ is there: the page, and on it the heading."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
_CITED = re.compile(r"\b(docs/[a-z0-9_/-]+\.md)(?:#([a-z0-9-]+))?")


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_citation_leads_somewhere() -> None:
    layers = ("domain", "ports", "adapters", "connectors", "entrypoints", "benchmarks", "tests")
    sources = [path for layer in layers for path in (ROOT / layer).rglob("*.py")] + list(ROOT.glob("*.md"))
    lost = []
    for source in sources:
        for page, anchor in _CITED.findall(source.read_text("utf-8")):
            if not (ROOT / page).is_file() or (anchor and anchor not in _anchors(ROOT / page)):
                lost.append(f"{source.relative_to(ROOT)}: {page}#{anchor}")
    assert not lost


def test_every_test_that_docs_name_is_there() -> None:
    named = {
        (page.name, test)
        for page in (ROOT / "docs").rglob("*.md")
        for test in re.findall(r"`(tests/[A-Za-z0-9_/.]*)`", page.read_text("utf-8"))
    }
    assert len([test for page, test in named if page == "threat-model.md"]) > 30
    assert sorted((page, test) for page, test in named if not (ROOT / test).exists()) == []
