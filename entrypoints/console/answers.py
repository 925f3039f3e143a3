"""What operations answer, as templates read it: a property that is absent is none, where a name that is misspelt is still an error."""

from typing import Any


class Fields(dict[str, Any]):
    """A JSON object; properties that it has not are None."""

    def __missing__(self, name: str) -> None:
        return None


def answered(value: Any) -> Any:
    """The value with every object of it so."""
    if isinstance(value, dict):
        return Fields((name, answered(part) if isinstance(part, dict | list) else part) for name, part in value.items())
    if isinstance(value, list):
        return [answered(part) if isinstance(part, dict | list) else part for part in value]
    return value
