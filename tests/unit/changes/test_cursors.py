"""Cursors of the change feed (adapters/wire/cursors.py): what goes in comes out, for its tenant alone."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.wire.cursors import LONGEST_CURSOR, Cursors, FeedCursors, context_of
from domain.changes.model import FeedPosition
from domain.events.model import LogPosition
from domain.kernel.tenancy import Tenant
from domain.secrets.keys import SigningKeys

KEYS = SigningKeys(b"k" * 32, ())
CURSORS = FeedCursors(KEYS)
TENANT = Tenant("org_1", True)
MOMENTS = st.datetimes(datetime(2020, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))
POSITIONS = st.builds(LogPosition, st.integers(0, 1 << 31), st.integers(0, 1 << 62), st.none() | MOMENTS)


@given(POSITIONS, POSITIONS)
def test_what_goes_in_comes_out(own: LogPosition, network: LogPosition) -> None:
    position = FeedPosition(own, network)
    cursor = CURSORS.sign(TENANT, position)
    assert CURSORS.open(TENANT, cursor) == position
    assert len(cursor) < LONGEST_CURSOR and cursor.replace("-", "").replace("_", "").isalnum()


@given(st.tuples(POSITIONS, POSITIONS), st.tuples(POSITIONS, POSITIONS))
def test_places_have_one_cursor_each(
    one_place: tuple[LogPosition, LogPosition], other_place: tuple[LogPosition, LogPosition]
) -> None:
    one, other = FeedPosition(*one_place), FeedPosition(*other_place)
    assert (CURSORS.sign(TENANT, one) == CURSORS.sign(TENANT, other)) == (one == other)


def test_they_open_for_their_tenant_alone() -> None:
    cursor = CURSORS.sign(TENANT, FeedPosition(LogPosition(3, 17)))
    for stranger in (Tenant("org_1", False), Tenant("org_2", True)):
        assert CURSORS.open(stranger, cursor) is None
        assert CURSORS.sign(stranger, FeedPosition(LogPosition(3, 17))) != cursor
    assert FeedCursors(SigningKeys(b"x" * 32, ())).open(TENANT, cursor) is None


@pytest.mark.parametrize("number", [0, 1, 17, 4711, 1 << 40])
def test_those_that_held_a_position_alone_still_open(number: int) -> None:
    old = Cursors(KEYS).sign(context_of("changes", TENANT, {}, {}), str(number))
    assert old is not None
    assert CURSORS.open(TENANT, old) == FeedPosition(LogPosition(position=number))


def test_times_are_kept_to_the_microsecond() -> None:
    moment = datetime(2026, 11, 20, 13, 8, 0, 123456, tzinfo=UTC)
    for by in (0, 1, 999):
        position = FeedPosition(LogPosition(1, 2, moment + timedelta(microseconds=by)))
        assert CURSORS.open(TENANT, CURSORS.sign(TENANT, position)) == position
