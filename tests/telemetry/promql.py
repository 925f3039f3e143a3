"""Parser of the PromQL subset that the shipped queries use, and a check of their metrics and labels against /metrics.

Other functions, aggregations and matchers raise an error, so that no part of a query is ignored.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from prometheus_client.parser import text_string_to_metric_families

FUNCTIONS = frozenset({"rate", "increase", "delta", "histogram_quantile", "absent"})
AGGREGATIONS = frozenset({"sum", "min", "max", "avg", "count", "topk"})
OPERATORS = frozenset({"and", "or", "unless"})
SCRAPED = frozenset({"instance", "job"})
"""Labels that Prometheus adds to everything."""
OWN = {"up": SCRAPED}
"""Metrics that Prometheus creates itself."""
_TOKEN = re.compile(
    r"\s*(?:(?P<range>\[(?:\d+[smhd]|\$__rate_interval)\])|(?P<name>[A-Za-z_:][A-Za-z0-9_:]*)|(?P<text>\"[^\"]*\")"
    r"|(?P<number>\d+(?:\.\d+)?)|(?P<sign>=~|!~|!=|==|>=|<=|[-+*/<>=(){},]))"
)


@dataclass
class Exposition:
    """Exposed metrics: labels and their values by sample name."""

    series: dict[str, dict[str, set[str]]] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)


def parse_exposition(texts: Sequence[str]) -> Exposition:
    """Parse the texts of several processes into one exposition."""
    shown = Exposition()
    for text in texts:
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                labels = shown.series.setdefault(sample.name, {})
                shown.types[sample.name] = family.type
                for name, value in sample.labels.items():
                    labels.setdefault(name, set()).add(value)
    return shown


@dataclass
class Selector:
    """Metric with its matchers (label, operator, value), and whether a range of it is selected."""

    metric: str
    matchers: list[tuple[str, str, str]] = field(default_factory=list)
    ranged: bool = False


@dataclass
class Query:
    """Metrics that an expression selects, and the labels by which it groups them."""

    selectors: list[Selector] = field(default_factory=list)
    grouped: set[str] = field(default_factory=set)


def _tokenise(text: str) -> Iterator[tuple[str, str]]:
    position = 0
    while position < len(text.rstrip()):
        found = _TOKEN.match(text, position)
        if found is None:
            raise ValueError(f"not understood from here on: {text[position:]!r}")
        position = found.end()
        yield str(found.lastgroup), found[str(found.lastgroup)]


def parse_query(text: str) -> Query:
    """Parse the expression; raises ValueError for unsupported syntax."""
    tokens, query, depth, place = [*_tokenise(text), ("end", "")], Query(), 0, 0
    while tokens[place][0] != "end":
        kind, token = tokens[place]
        following = tokens[place + 1][1]
        place += 1
        if kind == "name" and token in AGGREGATIONS and following == "by":
            place = _parse_grouping(tokens, place + 1, query)
        elif kind == "name" and token in FUNCTIONS | AGGREGATIONS:
            if following != "(":
                raise ValueError(f"{token} of nothing")
        elif kind == "name" and token not in OPERATORS:
            place = _parse_selector(token, tokens, place, query)
        elif token in "()" and kind == "sign":
            depth += 1 if token == "(" else -1
            if depth < 0:
                raise ValueError("one bracket too many")
        elif kind in ("text", "range") or (kind == "sign" and token in "{},=" and token != ","):
            raise ValueError(f"{token} stands alone")
    if depth:
        raise ValueError("a bracket is missing")
    return query


def _parse_grouping(tokens: Sequence[tuple[str, str]], place: int, query: Query) -> int:
    if tokens[place][1] != "(":
        raise ValueError("by what?")
    while tokens[place][1] != ")":
        place += 1
        if tokens[place][0] == "name":
            query.grouped.add(tokens[place][1])
        elif tokens[place][1] not in (",", ")"):
            raise ValueError("labels are names")
    return place + 1


def _parse_selector(metric: str, tokens: Sequence[tuple[str, str]], place: int, query: Query) -> int:
    selector = Selector(metric)
    query.selectors.append(selector)
    if tokens[place][1] == "{":
        while tokens[place][1] != "}":
            (kind, label), (_, operator), (quoted, value) = tokens[place + 1 : place + 4]
            if (kind, quoted) != ("name", "text") or operator not in ("=", "!=", "=~", "!~"):
                raise ValueError(f"{metric}: no matcher")
            selector.matchers.append((label, operator, value[1:-1]))
            place += 4
            if tokens[place][1] not in (",", "}"):
                raise ValueError(f"{metric}: matchers do not end")
        place += 1
    if tokens[place][0] == "range":
        selector.ranged = True
        place += 1
    return place


def find_faults(text: str, shown: Exposition, words: Mapping[str, frozenset[str]]) -> list[str]:
    """Return the parts of the expression that are not exposed; `words` are further values of labels."""
    query = parse_query(text)
    problems, known = [], set(SCRAPED)
    for one in query.selectors:
        labels = shown.series.get(one.metric)
        if labels is None and one.metric not in OWN:
            problems.append(f"{one.metric} is not shown")
            continue
        known |= set(labels or ())
        for label, operator, value in one.matchers:
            if label not in (labels or {}).keys() | SCRAPED:
                problems.append(f"{one.metric} has no label {label}")
            elif operator in ("=", "!=") and value not in (labels or {}).get(label, set()) | words.get(
                label, frozenset()
            ):
                problems.append(f"{one.metric}: {label} is never {value}")
            elif operator in ("=~", "!~"):
                re.compile(value)
        if (
            one.ranged
            and one.metric.startswith("joinery")
            and f"rate({one.metric}" in text
            and shown.types[one.metric] == "gauge"
        ):
            problems.append(f"{one.metric} is a gauge: it has no rate")
    return [*problems, *(f"nothing has the label {label} to group by" for label in sorted(query.grouped - known))]
