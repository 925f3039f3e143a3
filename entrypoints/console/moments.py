"""Days and moments as forms give them, in the words of the API."""

from datetime import UTC, date, datetime, timedelta


def moment_of(text: str) -> str:
    """A moment as a field of date and time gives it, in UTC; empty for none. What is no moment goes as it is, and is refused by name."""
    if not text.strip():
        return ""
    try:
        at = datetime.fromisoformat(text.strip())
        return at.replace(tzinfo=at.tzinfo or UTC).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError):
        return text.strip()


def beginning_of_day(text: str, later: int = 0) -> str:
    """The beginning (UTC) of a day, or of one so many days later. What is no day goes as it is, and is refused by name."""
    try:
        return f"{(date.fromisoformat(text) + timedelta(days=later)).isoformat()}T00:00:00Z"
    except (ValueError, OverflowError):
        return text
