"""Builds the documentation site with Sphinx: the pages of docs/, the reference, the events and the error codes."""

import json
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from posixpath import dirname, join, normpath, relpath
from shutil import move, rmtree
from tempfile import TemporaryDirectory
from typing import Any, Final

from jinja2 import Environment, PackageLoader, select_autoescape
from sphinx.application import Sphinx

from adapters.wire.event_types import EVENT_TYPES
from domain.events.model import TYPES
from domain.webhooks.samples import TYPES_WITH_SAMPLE
from entrypoints.areas.registry import AREAS
from entrypoints.operations.codes import CODES, FIELD_CODES
from entrypoints.operations.openapi import REQUEST_HEADERS, codes_of, header_names, problem_example
from entrypoints.operations.query_string import parameters_of
from entrypoints.operations.table import Table
from entrypoints.site.calls import curl, in_clients, in_words, pretty
from entrypoints.site.event_samples import sample_of
from entrypoints.site.schemas import WHO, example_of, fields, inline, note_of, type_of
from entrypoints.site.site import BASE_URL, BUILT, DOCS_URL, POLICY_FILE, hash_source

ROOT = Path(__file__).parents[2]
_TABS = {"sh": "curl", "python": "Python", "ts": "TypeScript"}
"""Languages whose adjacent code blocks are shown as tabs."""
_FENCE = r"```({})\b[^\n]*\n(?:(?!```)[^\n]*\n)*```\n"
_SAMPLE = re.compile(_FENCE.format("sh|python|ts"))
_ADJACENT_SAMPLES = re.compile(rf"^{_FENCE.format('sh|python')}(?:\n{_FENCE.format('python|ts')})+", re.MULTILINE)
_SETTINGS: Final[Mapping[str, Any]] = {
    "project": "Joinery",
    "html_title": "Joinery docs",
    "root_doc": "index",
    "extensions": ["myst_parser", "sphinx_design", "sphinx_copybutton"],
    "myst_enable_extensions": ["colon_fence"],
    "myst_heading_anchors": 4,
    "suppress_warnings": ["myst.xref_missing", "myst.header", "misc.highlighting_failure"],
    "html_theme": "furo",
    "html_static_path": [str(Path(__file__).parent / "theme")],
    "html_css_files": ["joinery.css"],
    "html_js_files": ["joinery.js"],
    "html_link_suffix": "",
    "html_copy_source": False,
    "html_show_sourcelink": False,
    "html_show_sphinx": False,
    "html_use_index": False,
    "html_show_copyright": False,
    "html_theme_options": {"footer_icons": []},
}


def pages() -> dict[str, str]:
    """Return every page as Markdown by its name below /docs/."""
    contents = tomllib.loads(files("entrypoints.site").joinpath("contents.toml").read_text("utf-8"))
    groups = [group for group in contents["group"] if "pages" in group]
    names = {f"docs/{page}.md": join(group["under"], page) for group in groups for page in group["pages"]}
    decisions = sorted(path.stem for path in (ROOT / "docs" / "decisions").glob("*.md"))
    names |= {f"docs/decisions/{name}.md": f"inside/decisions/{name}" for name in decisions}
    names |= {"CHANGELOG.md": "changelog", "docs/decisions": "inside/decisions"}
    pages_by_name = {name: _read_page(file, name, names) for file, name in names.items() if (ROOT / file).is_file()}
    for page, words in contents["also"].items():  # search terms that are not displayed
        pages_by_name[names[f"docs/{page}.md"]] += f"\n<div hidden>{words}</div>\n"
    return pages_by_name | dict(_generate_pages(contents, decisions))


def _read_page(file: str, name: str, names: Mapping[str, str]) -> str:
    """Read a page of docs/; resolve links to site pages or plain text, and turn samples in several languages into tabs."""

    def resolve_link(link: re.Match[str]) -> str:
        path, mark, anchor = link[2].partition("#")
        if re.match(r"[a-z]+:", link[2]) or not path:
            return link[0]
        target_page = names.get(normpath(join(dirname(file), path)))
        return (
            link[1]
            if target_page is None
            else f"[{link[1]}]({relpath(target_page, dirname(name) or '.')}.md{mark}{anchor})"
        )

    def to_tabs(found: re.Match[str]) -> str:
        items = "".join(
            f":::{{tab-item}} {_TABS[sample[1]]}\n:sync: {_TABS[sample[1]]}\n\n{sample[0]}:::\n"
            for sample in _SAMPLE.finditer(found[0])
        )
        return f"::::{{tab-set}}\n:sync-group: language\n\n{items}::::\n"

    text = re.sub(r"^<!--.*?-->\n", "", (ROOT / file).read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)", resolve_link, text)
    return _ADJACENT_SAMPLES.sub(to_tabs, text)


def _generate_pages(contents: Mapping[str, Any], decisions: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the pages that are rendered from templates."""
    environment = Environment(
        loader=PackageLoader("entrypoints.site"),
        autoescape=select_autoescape(default_for_string=False, default=False),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    table = Table(AREAS)
    environment.filters |= {"inline": inline, "pretty": pretty, "words": in_words, "type": type_of, "note": note_of}
    environment.globals |= {
        "areas": table.areas,
        "answering": {code: [row for row in table if code in codes_of(row)] for code in CODES},
        "base_url": BASE_URL,
        "codes": CODES,
        "codes_of": codes_of,
        "curl": curl,
        "decisions": decisions,
        "example_of": example_of,
        "field_codes": FIELD_CODES,
        "fields": _spaced_fields,
        "header_names": header_names,
        "headers": REQUEST_HEADERS,
        "in_clients": in_clients,
        "listed": contents,
        "parameters_of": parameters_of,
        "problem": lambda name: problem_example(name, DOCS_URL)["value"],
        "texts": tomllib.loads(files("entrypoints.site").joinpath("event_texts.toml").read_text("utf-8")),
        "types": TYPES,
        "who": WHO,
        "with_sample": TYPES_WITH_SAMPLE,
    }

    def render(template: str, **values: Any) -> str:
        return environment.get_template(template).render(values)

    for page in ("index", "reference", "events", "errors", "inside/decisions"):
        yield page, render(f"{page.rpartition('/')[2]}.md.jinja")
    for area in table.areas:
        yield f"reference/{area.name}", render("area.md.jinja", area=area)
    for name in TYPES:
        yield (
            f"events/{name}",
            render("event.md.jinja", name=name, schema=EVENT_TYPES.get(name), sample=sample_of(name, table)),
        )
    for code in CODES.values():
        yield f"errors/{code.name}", render("error.md.jinja", code=code)


def _spaced_fields(*given: Any, **named: Any) -> str:
    """List the fields with a space before each block, because the search index removes tags without one."""
    return re.sub(r"<(?=li|ul|details|br)", " <", fields(*given, **named))


def build(target: Path) -> None:
    """Build the site and replace the target folder. Raises SystemExit if Sphinx reports an error."""
    with TemporaryDirectory() as folder:
        source, pages_by_name, doctrees = (Path(folder, name) for name in ("source", "html", "doctrees"))
        for name, text in pages().items():
            path = source / f"{name}.md"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        application = Sphinx(
            source, None, pages_by_name, doctrees, "html", dict(_SETTINGS), status=None, warningiserror=True
        )
        application.build()
        if application.statuscode:
            raise SystemExit("The documentation has errors.")
        for unused in ("objects.inv", ".buildinfo"):
            (pages_by_name / unused).unlink()
        rmtree(pages_by_name / "_sources")
        allowed: dict[str, set[str]] = {"script": set(), "style": set()}
        for path in pages_by_name.rglob("*.html"):
            text = re.sub(r' style="[^"]*"', "", path.read_text("utf-8"))  # the policy does not allow inline styles
            path.write_text(text, "utf-8")
            for kind, found in allowed.items():
                found |= {hash_source(inner) for inner in re.findall(rf"<{kind}>(.*?)</{kind}>", text, re.DOTALL)}
        policy = json.dumps({kind: sorted(found) for kind, found in allowed.items()})
        (pages_by_name / POLICY_FILE).write_text(policy, "utf-8")
        rmtree(target, ignore_errors=True)
        move(pages_by_name, target)


if __name__ == "__main__":
    build(Path(sys.argv[1]) if len(sys.argv) > 1 else BUILT)
