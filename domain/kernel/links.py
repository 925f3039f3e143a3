"""The expiry of signed links."""

from datetime import UTC, datetime, timedelta

LINK_STEP = timedelta(seconds=30)
"""Links that are made within a step are equal, so that the ETags of answers that contain them are."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def start_of_step(moment: datetime) -> datetime:
    """Return the start of the step that contains the moment."""
    return moment - (moment - _EPOCH) % LINK_STEP


def link_expiry(now: datetime, lifetime: timedelta) -> datetime:
    """Return when a link that is made now expires: after its lifetime, rounded down to the start of a step."""
    return start_of_step(now + lifetime)
