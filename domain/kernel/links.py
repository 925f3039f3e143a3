"""The expiry of signed links, rounded so that links signed shortly after each other are equal."""

from datetime import UTC, datetime, timedelta

LINK_STEP = timedelta(seconds=30)
"""Times of expiry are multiples of this step, so that links signed within one step, and ETags of responses, are equal."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def round_down_to_step(moment: datetime) -> datetime:
    """Return the moment rounded down to a multiple of LINK_STEP."""
    return moment - (moment - _EPOCH) % LINK_STEP


def link_expiry(now: datetime, lifetime: timedelta) -> datetime:
    """Return when a link signed now expires: after its lifetime, rounded down to a multiple of LINK_STEP."""
    return round_down_to_step(now + lifetime)
