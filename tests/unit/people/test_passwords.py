"""Requirements of passwords."""

import asyncio
import unicodedata
from time import process_time

import pytest

from adapters.zxcvbn import MAX_ESTIMATED_CHARS, ZxcvbnEstimator
from domain.kernel.errors import Overloaded
from domain.people.passwords import MIN_GUESSES, describe_password_refusal, list_personal_words, normalise_password

EMAIL, NAME = "ingrid.berg@fjord.example", "Ingrid Berg"


@pytest.mark.parametrize(
    "good",
    [
        "correct horse battery staple", "schrank-unter-wasser", "kX9#vLq2mPz", "aaaa bbbb cccc d", "my dragon eats soup",
        "пароль из четырёх слов", "1843-09-27 rain", "welcome to nowhere else", "x" * 4 + "yzabq" * 3,
    ],
)  # fmt: skip
@pytest.mark.asyncio
async def test_good_passwords_are_accepted(good: str) -> None:
    assert describe_password_refusal(good, EMAIL, NAME) is None and not await _is_guessable(good)


async def _is_guessable(password: str) -> bool:
    return await ZxcvbnEstimator().estimate_guesses(password, list_personal_words(EMAIL, NAME)) < MIN_GUESSES


@pytest.mark.parametrize(
    "common",
    [
        "password123", "P@ssw0rd2026!", "Welcome2026!", "1234567890", "12345678910", "0987654321", "qwertyuiop", "qwertzuiop1",
        "1q2w3e4r5t6z", "1qaz2wsx3edc", "abcabcabcabc", "aaaaaaaaaaaa", "iloveyou2026", "passwordpassword", "letmein!!!!",
        "Sunshine2026", "football-1990", "AdminAdmin99", "trustno1trustno1", "joinery2026!", "abcdefghijk", "qwerty123456",
        "zxcvbnm,asd", "changeme!!", "administrator1", "manchester", "4815162342", "dragonball", "Summer2025!!", "Chester1985",
        "sonnenschein", "motdepasse1", "azertyuiop1", "furniture2026", "showroom-1",
    ],
)  # fmt: skip
@pytest.mark.asyncio
async def test_common_passwords_are_refused(common: str) -> None:
    assert await _is_guessable(common), common


@pytest.mark.asyncio
async def test_only_the_first_characters_are_estimated() -> None:
    long = await ZxcvbnEstimator().estimate_guesses("4@8({[369!1|7$5+" * 16, ())
    assert long == await ZxcvbnEstimator().estimate_guesses(("4@8({[369!1|7$5+" * 16)[:MAX_ESTIMATED_CHARS], ())


@pytest.mark.parametrize("own", ["x ingrid.berg 99 q", "fjord.example blue", "my name is INGRID ok"])
def test_passwords_containing_the_name_or_address_are_refused(own: str) -> None:
    assert "address or name" in (describe_password_refusal(own, EMAIL, NAME) or "")


def test_length_is_counted_in_characters_after_normalising() -> None:
    assert "at least 10" in (describe_password_refusal("kX9#vLq2m", EMAIL) or "") and "at most 256" in (
        describe_password_refusal("kX9#vLq2mP " * 24, EMAIL) or ""
    )
    composed = "Grüße über Öfen"
    assert normalise_password(unicodedata.normalize("NFD", composed)) == composed


def test_a_very_long_text_is_refused_before_it_is_normalised() -> None:
    # Sorting combining marks takes quadratic time: half a minute for these.
    marks = "a" + "\u0315" * 65_000 + "\u0300" * 65_000
    began = process_time()
    assert "at most 256" in (describe_password_refusal(marks, EMAIL, NAME) or "")
    assert process_time() - began < 1


@pytest.mark.asyncio
async def test_checks_leave_threads_to_others_and_are_refused_under_load() -> None:
    guesses = ZxcvbnEstimator(max_waiting_calls=4)
    checks = [asyncio.create_task(guesses.estimate_guesses("4@({[<1!|7+$5%02", ())) for _ in range(40)]
    await asyncio.sleep(0)
    assert await asyncio.wait_for(asyncio.to_thread(lambda: "served"), 5) == "served"
    answered = await asyncio.gather(*checks, return_exceptions=True)
    assert (
        sum(isinstance(one, Overloaded) for one in answered) == 35
        and sum(isinstance(one, int) for one in answered) == 5
    )
    assert await guesses.estimate_guesses("correct horse battery staple", ()) > MIN_GUESSES
    guesses.close()


@pytest.mark.asyncio
async def test_a_cancelled_check_keeps_its_slot_until_the_thread_is_done() -> None:
    guesses = ZxcvbnEstimator(max_waiting_calls=0)
    task = asyncio.create_task(guesses.estimate_guesses("4@({[<1!|7+$5%02", ()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    for _ in range(200):
        try:
            assert await guesses.estimate_guesses("kX9#vLq2mPz", ()) > MIN_GUESSES
            break
        except Overloaded:
            await asyncio.sleep(0.05)
    else:
        pytest.fail("it is never judged again")
    guesses.close()
