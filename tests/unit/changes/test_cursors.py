"""Cursors of the change feed: they round-trip and are valid only for their tenant (adapters/api_json/cursors.py)."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.api_json.cursors import MAX_CURSOR_LENGTH, CursorSigner, FeedCursorSigner, build_cursor_context
from domain.changes.model import FeedPosition
from domain.events.model import LogPosition
from domain.kernel.tenancy import Tenant
from domain.secrets.keys import SigningKeys

KEYS = SigningKeys(b"k" * 32, ())
CURSORS = FeedCursorSigner(KEYS)
TENANT = Tenant("org_1", True)
MOMENTS = st.datetimes(datetime(2020, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))
POSITIONS = st.builds(LogPosition, st.integers(0, 1 << 31), st.integers(0, 1 << 62), st.none() | MOMENTS)


@given(POSITIONS, POSITIONS)
def test_cursors_round_trip(own: LogPosition, network: LogPosition) -> None:
    position = FeedPosition(own, network)
    cursor = CURSORS.sign(TENANT, position)
    assert CURSORS.verify(TENANT, cursor) == position
    assert len(cursor) < MAX_CURSOR_LENGTH and cursor.replace("-", "").replace("_", "").isalnum()


@given(st.tuples(POSITIONS, POSITIONS), st.tuples(POSITIONS, POSITIONS))
def test_each_position_has_one_cursor(
    one_place: tuple[LogPosition, LogPosition], other_place: tuple[LogPosition, LogPosition]
) -> None:
    one, other = FeedPosition(*one_place), FeedPosition(*other_place)
    assert (CURSORS.sign(TENANT, one) == CURSORS.sign(TENANT, other)) == (one == other)


def test_cursors_are_valid_only_for_their_tenant() -> None:
    cursor = CURSORS.sign(TENANT, FeedPosition(LogPosition(3, 17)))
    for outsider in (Tenant("org_1", False), Tenant("org_2", True)):
        assert CURSORS.verify(outsider, cursor) is None
        assert CURSORS.sign(outsider, FeedPosition(LogPosition(3, 17))) != cursor
    assert FeedCursorSigner(SigningKeys(b"x" * 32, ())).verify(TENANT, cursor) is None


@pytest.mark.parametrize("number", [0, 1, 17, 4711, 1 << 40])
def test_cursors_with_only_a_position_are_still_valid(number: int) -> None:
    old = CursorSigner(KEYS).sign(build_cursor_context("changes", TENANT, {}, {}), str(number))
    assert old is not None
    assert CURSORS.verify(TENANT, old) == FeedPosition(LogPosition(position=number))


def test_times_have_microseconds() -> None:
    moment = datetime(2026, 11, 20, 13, 8, 0, 123456, tzinfo=UTC)
    for by in (0, 1, 999):
        position = FeedPosition(LogPosition(1, 2, moment + timedelta(microseconds=by)))
        assert CURSORS.verify(TENANT, CURSORS.sign(TENANT, position)) == position
