"""A table whose columns are being given their meaning."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from domain.ingestion.mapping.evidence import CONTRADICTED, Traits, traits_of
from domain.ingestion.model import FeedSettings
from domain.ingestion.vocabulary.headings import plain_words
from domain.ingestion.vocabulary.senses import Sense

_PLAIN: Final = 60


@dataclass(slots=True)
class Sheet:
    """Headers, the first values below each, and what each column may mean so far, strongest first."""

    headers: Sequence[str]
    samples: Sequence[Sequence[str]]
    settings: FeedSettings
    options: list[tuple[Sense, ...]]
    words: Sequence[str] = field(init=False)
    traits: Sequence[Traits | None] = field(init=False)

    def __post_init__(self) -> None:
        """Work out the headers in plain form and the traits of the values."""
        self.words = [plain_words(header) for header in self.headers]
        self.traits = [traits_of(values) for values in self.samples]

    def strongest(self, place: int) -> Sense:
        """Return the strongest sense of a column; one of no field where it has none."""
        return self.options[place][0] if self.options[place] else Sense("", 0)

    def field_of(self, place: int) -> str:
        """Return the field that a column plainly has, or nothing."""
        first = self.strongest(place)
        return first.field if first.score >= _PLAIN else ""

    def places_of(self, *fields: str) -> list[int]:
        """Return the columns whose strongest sense is one of the fields."""
        return [place for place in range(len(self.options)) if self.strongest(place).field in fields]

    def names(self, place: int, words: frozenset[str]) -> bool:
        """Return whether one of the words stands in a column's header."""
        return not words.isdisjoint(self.words[place].split())

    def change(self, place: int, **changes: Any) -> None:
        """Change the strongest sense of a column."""
        self.options[place] = (replace(self.options[place][0], **changes), *self.options[place][1:])

    def contradict(self, place: int) -> None:
        """Leave a column without any field that it may have."""
        self.options[place] = (replace(self.options[place][0], field=CONTRADICTED, score=1),)
