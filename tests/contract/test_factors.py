"""Storage of one-time codes, recovery codes and passkeys (domain/people/ports.py): single use under concurrency."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from domain.kernel.ids import new_id
from domain.people.factors import Authenticator, Passkey
from domain.people.model import User
from tests.support import builders
from tests.support.backend import Backend

pytestmark = pytest.mark.asyncio
NOW = builders.MOMENT


async def _add_user(backend: Backend) -> str:
    id_ = new_id("usr")
    return (await backend.people.add(User(id_, f"{id_}@fjord.example", "", None, NOW))).id


def _build_passkey(user: str, **changes: object) -> Passkey:
    id_ = new_id("pky")
    made = Passkey(id_, user, f"credential of {id_}".encode(), b"key", 5, "Laptop", True, NOW)
    return replace(made, **changes)  # type: ignore[arg-type]


async def test_an_authenticator_counts_once_confirmed_and_each_time_step_is_used_once(backend: Backend) -> None:
    user, factors = await _add_user(backend), backend.factors
    assert await factors.find_authenticator(user) is None
    first = Authenticator(user, b"first", None)
    assert await factors.replace_codes(user, [b"a"]) is False, "there is no authenticator"
    assert await factors.enrol(first) == first
    assert await factors.enrol(Authenticator(user, b"second", None)) == first, (
        "a concurrent enrolment returns the same authenticator"
    )
    assert await factors.use_totp_step(user, 10) is False and await factors.replace_codes(user, [b"a"]) is False
    assert await factors.confirm(Authenticator(user, b"second", None), 10, [b"a"], NOW) is False, (
        "another authenticator"
    )
    tries = [factors.confirm(first, 10, [b"%d" % number, b"%d too" % number], NOW) for number in range(4)]
    done = await asyncio.gather(*tries)
    assert sorted(done) == [False] * 3 + [True] and await factors.count_unused_codes(user) == 2
    assert await factors.use_code(user, b"%d" % done.index(True), NOW), "the codes of the first request are valid"
    assert await factors.find_authenticator(user) == Authenticator(user, b"first", NOW, 10)
    assert await factors.enrol(Authenticator(user, b"third", None)) == Authenticator(user, b"first", NOW, 10)
    assert await factors.use_totp_step(user, 10) is False and await factors.use_totp_step(user, 9) is False
    assert sorted(await asyncio.gather(*(factors.use_totp_step(user, 11) for _ in range(4)))) == [False] * 3 + [True]
    assert await factors.replace_codes(user, [b"a"])
    assert await factors.disenrol(user) is True and await factors.disenrol(user) is False
    assert await factors.find_authenticator(user) is None and await factors.count_unused_codes(user) == 0


async def test_a_recovery_code_is_used_once(backend: Backend) -> None:
    user, other, factors = await _add_user(backend), await _add_user(backend), backend.factors
    app = await factors.enrol(Authenticator(user, b"app", None))
    assert await factors.confirm(app, 1, [b"gone"], NOW)
    await asyncio.gather(*(factors.replace_codes(user, [b"%d" % number]) for number in range(4)))
    assert await factors.count_unused_codes(user) == 1, "of several sets the last one is valid"
    await factors.replace_codes(user, [b"a", b"b"])
    assert await factors.count_unused_codes(user) == 2
    assert await factors.use_code(user, b"gone", NOW) is False and await factors.use_code(other, b"a", NOW) is False
    assert sorted(await asyncio.gather(*(factors.use_code(user, b"a", NOW) for _ in range(4)))) == [False] * 3 + [True]
    assert await factors.count_unused_codes(user) == 1


async def test_passkeys_belong_to_one_user_and_their_counters_increase(backend: Backend) -> None:
    user, other, store = await _add_user(backend), await _add_user(backend), backend.passkeys
    one, still = _build_passkey(user), _build_passkey(user, sign_count=0)
    assert await store.add(one) and await store.add(still)
    assert await store.add(replace(one, id=new_id("pky"), user=other)) is False, "the credential exists already"
    assert list(await store.list_by_user(user)) == [one, still] and await store.find(b"none") is None
    assert await store.record_signature(one, 5, NOW) is False and await store.record_signature(one, 6, NOW) is True
    assert await store.record_signature(still, 0, NOW) is True, "an authenticator without a counter"
    assert await store.find(one.credential) == replace(one, sign_count=6, used_at=NOW)
    assert await store.rename(other, one.id, "Mine") is False and await store.rename(user, one.id, "Phone") is True
    assert await store.remove(other, one.id) is False and await store.remove(user, one.id) is True
    assert [kept.id for kept in await store.list_by_user(user)] == [still.id]


async def test_a_challenge_is_used_once_in_time_by_its_user(backend: Backend) -> None:
    user, store, later = await _add_user(backend), backend.passkeys, NOW + timedelta(minutes=5)
    own, anybodys = new_id("ses").encode(), new_id("ses").encode()
    await store.add_challenge(own, user, later)
    await store.add_challenge(anybodys, None, later)
    assert await store.use_challenge(own, None, NOW) is False and await store.use_challenge(own, user, later) is False
    assert await store.use_challenge(anybodys, user, NOW) is False
    assert await store.use_challenge(own, user, NOW) is True and await store.use_challenge(own, user, NOW) is False
    assert await store.delete_challenges(later) >= 0 and await store.use_challenge(anybodys, None, NOW) is True
    await store.add_challenge(own, user, later)
    assert await store.delete_challenges(later + timedelta(seconds=1)) >= 1
    assert await store.use_challenge(own, user, NOW) is False
