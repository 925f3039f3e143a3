"""What may be a password."""

import asyncio
import unicodedata
from time import process_time

import pytest

from adapters.zxcvbn import JUDGED, ZxcvbnGuesses
from domain.kernel.errors import Overloaded
from domain.people.passwords import FEWEST_GUESSES, normalised, own_words, refusal

EMAIL, NAME = "ingrid.berg@fjord.example", "Ingrid Berg"


@pytest.mark.parametrize(
    "good",
    [
        "correct horse battery staple", "schrank-unter-wasser", "kX9#vLq2mPz", "aaaa bbbb cccc d", "my dragon eats soup",
        "пароль из четырёх слов", "1843-09-27 rain", "welcome to nowhere else", "x" * 4 + "yzabq" * 3,
    ],
)  # fmt: skip
@pytest.mark.asyncio
async def test_good_ones(good: str) -> None:
    assert refusal(good, EMAIL, NAME) is None and not await _is_soon_guessed(good)


async def _is_soon_guessed(password: str) -> bool:
    return await ZxcvbnGuesses().withstands(password, own_words(EMAIL, NAME)) < FEWEST_GUESSES


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
async def test_common_ones(common: str) -> None:
    assert await _is_soon_guessed(common), common


@pytest.mark.asyncio
async def test_the_first_characters_are_looked_at() -> None:
    long = await ZxcvbnGuesses().withstands("4@8({[369!1|7$5+" * 16, ())
    assert long == await ZxcvbnGuesses().withstands(("4@8({[369!1|7$5+" * 16)[:JUDGED], ())


@pytest.mark.parametrize("own", ["x ingrid.berg 99 q", "fjord.example blue", "my name is INGRID ok"])
def test_ones_that_say_who_it_is(own: str) -> None:
    assert "address or name" in (refusal(own, EMAIL, NAME) or "")


def test_length_is_counted_in_characters_after_normalising() -> None:
    assert "at least 10" in (refusal("kX9#vLq2m", EMAIL) or "") and "at most 256" in (
        refusal("kX9#vLq2mP " * 24, EMAIL) or ""
    )
    composed = "Grüße über Öfen"
    assert normalised(unicodedata.normalize("NFD", composed)) == composed


def test_a_text_far_too_long_is_refused_before_its_marks_are_put_in_order() -> None:
    # Sorting marks takes time that grows with the square of their number: of these, half a minute.
    marks = "a" + "\u0315" * 65_000 + "\u0300" * 65_000
    began = process_time()
    assert "at most 256" in (refusal(marks, EMAIL, NAME) or "")
    assert process_time() - began < 1


@pytest.mark.asyncio
async def test_judging_leaves_threads_to_others_and_refuses_more_than_is_judged_soon() -> None:
    guesses = ZxcvbnGuesses(waiting=4)
    asked = [asyncio.create_task(guesses.withstands("4@({[<1!|7+$5%02", ())) for _ in range(40)]
    await asyncio.sleep(0)
    assert await asyncio.wait_for(asyncio.to_thread(lambda: "served"), 5) == "served"
    answered = await asyncio.gather(*asked, return_exceptions=True)
    assert (
        sum(isinstance(one, Overloaded) for one in answered) == 35
        and sum(isinstance(one, int) for one in answered) == 5
    )
    assert await guesses.withstands("correct horse battery staple", ()) > FEWEST_GUESSES
    guesses.close()


@pytest.mark.asyncio
async def test_who_gives_up_waiting_leaves_no_room_behind_before_the_thread_is_done() -> None:
    guesses = ZxcvbnGuesses(waiting=0)
    task = asyncio.create_task(guesses.withstands("4@({[<1!|7+$5%02", ()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    for _ in range(200):
        try:
            assert await guesses.withstands("kX9#vLq2mPz", ()) > FEWEST_GUESSES
            break
        except Overloaded:
            await asyncio.sleep(0.05)
    else:
        pytest.fail("it is never judged again")
    guesses.close()
