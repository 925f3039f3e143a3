"""Removal of links from a model's answers, so that no address carries data to third parties.

An instruction in a product's description could make a model write an address that contains data. A client that renders the
answer as Markdown would load it as an image, or a person would open it. An address therefore remains only if it occurs in the
data of the conversation, character by character. Images become links, and HTML becomes text.
"""

import html
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

REMOVED = "[link removed]"
_ADDRESS_PATTERN = (
    r"(?:\b[a-z][a-z0-9+.-]{1,20}:[/\\]|[/\\]{2}(?=[\w\[])"
    r"|\b(?:https?|ftp|wss?|file|data|javascript|vbscript|mailto|tel|sms|xmpp):(?=\S)"
    r"|\bwww\.|(?<![\w.+-])[\w.+-]+@(?=[\w-]{1,63}\.\w)"
    r"|(?<![\w.-])(?:[\w-]*\.)+(?:[a-z]{2,24}(?=[/?#])|(?:com|net|org|info|biz|io|de|eu|uk|app|dev)\b))[^\s<]*"
)
"""Address as clients recognise it in Markdown, HTML and plain text, with or without a scheme, up to white space."""
_ADDRESS = re.compile(_ADDRESS_PATTERN, re.IGNORECASE)
_LINK_OR_ADDRESS = re.compile(
    r"(?P<link>(?:!?\[(?P<label>[^\[\]]{0,1000}))?\]\(\s*<?(?P<target>[^)>\s]*)[^)]*\)?)|" + _ADDRESS_PATTERN,
    re.IGNORECASE,
)
_SCHEME = re.compile(r"^https?://", re.IGNORECASE)
_PATH = re.compile(r"[/\\?#]")
_HOST = re.compile(r"https?://[\w.-]+(?![\w@:])")
_DELIMITER = re.compile(r"[\"')\]>]")
_CLOSING_CHARS = ".,;:!?*_`\\\"')]}>|~"
_COMPLETE_BRACKET = re.compile(r"\[[^\]]*\](?:\([^)]*\)|[^(])")
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_IMAGE = re.compile(r"!(?=\[)")
_TAG = re.compile(r"<(?=[a-z/!?]|\Z)", re.IGNORECASE)
_INVISIBLE = re.compile(
    r"[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff"
    r"\uffa0\U000e0000-\U000e0fff]"
)
_MAX_HELD_CHARS = 2_000


def find_addresses(value: Any) -> frozenset[str]:
    """Return the addresses in the texts of a JSON value, without punctuation that follows them, and their hosts.

    Each address is also returned without its scheme, as people write it.
    """
    return find_new_addresses(value, ())


def find_new_addresses(value: Any, arguments: Any) -> frozenset[str]:
    """Return the addresses in a result except those at hosts in the arguments, which the model wrote."""
    hosts = {_find_host(address) for address in _iter_addresses(arguments)}
    return frozenset(
        form
        for address in _iter_addresses(value)
        if _find_host(address) not in hosts
        for form in (
            address,
            _DELIMITER.split(address, maxsplit=1)[0].rstrip(_CLOSING_CHARS),
            *_list_short_forms(address),
        )
    )


def _find_host(address: str) -> str:
    return _PATH.split(_SCHEME.sub("", address).lstrip("/\\"), maxsplit=1)[0].rpartition("@")[2].lower()


def _iter_addresses(value: Any) -> Iterator[str]:
    for text in _iter_texts(value):
        for match in _ADDRESS.finditer(text):
            yield match[0].rstrip(_CLOSING_CHARS)


def _list_short_forms(address: str) -> Sequence[str]:
    host = _HOST.match(address)
    return () if host is None else (host[0], _SCHEME.sub("", host[0]), _SCHEME.sub("", address))


def _iter_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, part in value.items():
            yield str(name)
            yield from _iter_texts(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _iter_texts(part)


def remove_links(value: Any, known_addresses: Collection[str]) -> Any:
    """Return a JSON value whose texts contain no links except the known addresses."""
    if isinstance(value, str):
        link_filter = LinkFilter(known_addresses)
        return link_filter.add(value) + link_filter.finish()
    if isinstance(value, Mapping):
        return {
            remove_links(name, known_addresses): remove_links(part, known_addresses) for name, part in value.items()
        }
    return [remove_links(part, known_addresses) for part in value] if isinstance(value, list) else value


class LinkFilter:
    """Filter for one text that arrives in parts; words are held back until they are complete.

    Args:
        known_addresses: The addresses in the data of the conversation.
    """

    def __init__(self, known_addresses: Collection[str]) -> None:
        self._known_addresses, self._held = known_addresses, ""

    def add(self, text: str) -> str:
        """Return the filtered text of all words that are complete after this part."""
        held = self._held + text
        end = _find_end_of_complete_words(held) if len(held) < _MAX_HELD_CHARS else len(held)
        self._held = held[end:]
        return self._filter(held[:end])

    def finish(self) -> str:
        """Return the filtered rest."""
        rest, self._held = self._held, ""
        return self._filter(rest)

    def _filter(self, text: str) -> str:
        """Return the text without links, also those that appear when a client decodes entities and escapes."""
        visible = _INVISIBLE.sub("", text)
        decoded = _decode_entities(visible)
        unescaped = _ESCAPE.sub(r"\1", decoded)
        for candidate in (unescaped, decoded):
            if (filtered := self._replace_links(candidate)) != candidate:
                return filtered
        return visible

    def _replace_links(self, text: str) -> str:
        return _TAG.sub("< ", _IMAGE.sub("", _LINK_OR_ADDRESS.sub(self._replace, text)))

    def _replace(self, match: re.Match[str]) -> str:
        if match["link"] is None:
            return self._replace_address(match)
        label, target = match["label"], match["target"]
        shown = "]" if label is None else f"[{_ADDRESS.sub(self._replace_address, label)}]"
        return f"{shown}({target})" if target in self._known_addresses else f"{shown} {REMOVED}"

    def _replace_address(self, match: re.Match[str]) -> str:
        return match[0] if self._is_known(match[0]) else REMOVED

    def _is_known(self, token: str) -> bool:
        """Return whether a token is a known address, followed by closing punctuation only."""
        address = _DELIMITER.split(token, maxsplit=1)[0].rstrip(_CLOSING_CHARS)
        return token.rstrip(_CLOSING_CHARS) in self._known_addresses or (
            address in self._known_addresses and not token[len(address) :].strip(_CLOSING_CHARS)
        )


def _decode_entities(text: str) -> str:
    """Return the text with all entities decoded, also entities in encoded entities."""
    while (decoded := html.unescape(text)) != text:
        text = decoded
    return text


def _find_end_of_complete_words(text: str) -> int:
    """Return the end of the last word that is followed by white space, and outside an incomplete Markdown link."""
    end = len(text) - len(re.split(r"\s", text)[-1])
    start = text.rfind("[", 0, end)
    if start >= 0 and "\n" not in text[start:end] and not _COMPLETE_BRACKET.match(text[start:end]):
        return start - (text[start - 1 : start] == "!")
    return end
