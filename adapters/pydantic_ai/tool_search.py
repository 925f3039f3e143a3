"""Search of tools by the words of a task, ranked by BM25 (Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009)."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from math import log

from pydantic_ai.tools import RunContext, ToolDefinition

_SATURATION, _LENGTH_WEIGHT = 1.2, 0.4
"""The parameters k1 and b of BM25."""
_TITLE_WEIGHT = 3
"""Weight of a word in the name or the title of a tool, compared with one in its description."""
_WORD = re.compile(r"[^\W_]+")
_SUFFIXES = ("ings", "ing", "ies", "ied", "ed", "es", "s", "e", "y")
_STOP_WORDS = frozenset(
    "a about again all an and any are as at be been before but by can could did do does for from had has have how i if in into is it "
    "its last list me more my no not now of on one only or our out page please return returns should show so than that the their "
    "them then there these they this to under us was we were what when which who why will with would you your".split()
)


def rank_tools(context: RunContext[None], queries: Sequence[str], tools: Sequence[ToolDefinition]) -> list[str]:
    """Return the names of the tools that share words with the queries, the most relevant first."""
    documents = {tool.name: _count_words(tool) for tool in tools}
    frequencies = Counter(word for document in documents.values() for word in document)
    mean_length = sum(document.total() for document in documents.values()) / max(len(documents), 1)
    words = {word for query in queries for word in _split_words(query)}
    weights = {
        word: log(1 + (len(documents) - frequencies[word] + 0.5) / (frequencies[word] + 0.5))
        for word in words
        if word in frequencies
    }
    scores = {name: _compute_score(document, weights, mean_length) for name, document in documents.items()}
    return sorted((name for name, score in scores.items() if score > 0), key=lambda name: -scores[name])


def _count_words(tool: ToolDefinition) -> Counter[str]:
    title, _, description = (tool.description or "").partition("\n")
    words = Counter(_split_words(description))
    for word in _split_words(f"{tool.name} {title}"):
        words[word] += _TITLE_WEIGHT
    return words


def _split_words(text: str) -> list[str]:
    """Return the words of a text without endings, so that forms of a word are equal, and without stop words."""
    return [_remove_ending(word) for word in _WORD.findall(text.lower()) if word not in _STOP_WORDS]


def _remove_ending(word: str) -> str:
    ending = next((one for one in _SUFFIXES if word.endswith(one) and len(word) - len(one) >= 3), "")
    return word.removesuffix(ending)


def _compute_score(document: Counter[str], weights: Mapping[str, float], mean_length: float) -> float:
    length = 1 - _LENGTH_WEIGHT + _LENGTH_WEIGHT * document.total() / mean_length
    return sum(
        weight * document[word] * (_SATURATION + 1) / (document[word] + _SATURATION * length)
        for word, weight in weights.items()
        if word in document
    )
