"""The rate classes in words, out of the table that requests are charged by."""

from entrypoints.http.checks import TIERS


def pace(per_second: float) -> str:
    """How many requests in which time, such as `100 a second`."""
    if per_second >= 1:
        return f"{per_second:,.0f} a second"
    return f"{per_second * 60:,.0f} a minute"


def in_words(rate: str) -> str:
    """The class of an operation with its numbers."""
    first, *larger = (pace(rates[rate][0]).partition(" ") for rates in TIERS.values())
    return f"{rate}: {first[0]} requests {first[2]}, {' or '.join(number for number, _, _ in larger)} in larger plans"
