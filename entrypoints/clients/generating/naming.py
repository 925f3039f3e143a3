"""What things of the description are called in the clients."""

from typing import Final

_PLAIN: Final = {"read": "get"}
_CATALOGUE: Final = "catalogue"


def type_name(component: str) -> str:
    """The type of a component: `source_list` is SourceList."""
    return "".join(part[:1].upper() + part[1:] for part in component.replace("-", "_").split("_"))


def camel(name: str) -> str:
    """The name as JavaScript writes it: `rotate_secret` is rotateSecret."""
    first, *others = name.split("_")
    return first + "".join(part.title() for part in others)


def group_and_method(operation: str) -> tuple[str, str]:
    """Of `webhooks.read_delivery` (webhooks, get_delivery); operations of the catalogue go by their nouns: (products, list)."""
    area, _, verb = operation.partition(".")
    word, _, noun = verb.partition("_")
    word = _PLAIN.get(word, word)
    if area == _CATALOGUE and noun:
        return _many(noun), word
    return area, f"{word}_{noun}" if noun else word


def parameter_name(group: str, path: str, parameter: str) -> str:
    """What a path's `{id}` is called: `id` of the group's own things, else what it is an id of (`source`)."""
    segments = path.split("/")
    segment = segments[segments.index(f"{{{parameter}}}") - 1]
    words = [one_of(word) for word in segment.split("-")]
    own = {one_of(word) for word in group.split("_")}
    return parameter if parameter != "id" or own & set(words) else "_".join(words)


def one_of(word: str) -> str:
    """The singular: `sources` is source, `categories` category."""
    if word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _many(noun: str) -> str:
    if noun.endswith("s"):
        return noun
    return noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
