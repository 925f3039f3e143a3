"""Blocks that are wider than a phone: code, code in several languages, tables. Each can be scrolled with the keyboard."""

from collections.abc import Sequence
from html import escape
from itertools import count


class Blocks:
    """Makes the blocks of one page: labels and names are used once on it."""

    def __init__(self) -> None:
        self._number = count(1)

    def _region(self, what: str) -> str:
        return f'tabindex="0" role="region" aria-label="{what} {next(self._number)}"'

    def code(self, text: str, language: str = "text") -> str:
        """Code that can be copied."""
        return (
            f'<div class="copy"><pre {self._region(f"Code, {language}")}><code>{escape(text)}</code></pre>'
            '<button type="button" hidden>Copy</button></div>'
        )

    def tabs(self, samples: Sequence[tuple[str, str]]) -> str:
        """The same in several languages, as (language, code): one is shown, without a script as well."""
        if len(samples) == 1:
            return self.code(samples[0][1], samples[0][0])
        group = next(self._number)
        choices, panels = [], []
        for at, (language, text) in enumerate(samples):
            own = f"tab-{group}-{at}"
            checked = " checked" if at == 0 else ""
            choices.append(
                f'<input type="radio" name="tab-{group}" id="{own}" value="{language}"{checked}>'
                f'<label for="{own}">{language}</label>'
            )
            panels.append(f'<div class="panel">{self.code(text, language)}</div>')
        return f'<fieldset class="tabs"><legend>Sample {group}: language</legend>{"".join(choices)}{"".join(panels)}</fieldset>'

    def opened_table(self) -> str:
        """What stands before a table; `</div>` stands behind it."""
        return f'<div class="scroll" {self._region("Table")}>'

    def table(self, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
        """A table of ready HTML."""
        heads = "".join(f'<th scope="col">{cell}</th>' for cell in head)
        body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
        return f"{self.opened_table()}<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>"
