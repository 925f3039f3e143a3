"""Identifiers are well formed, unique, and sorted in the order of their creation."""

import os
import string
from concurrent.futures import ThreadPoolExecutor

from domain.kernel import ids


def test_identifiers_are_well_formed() -> None:
    identifier = ids.new_id("prod")
    assert ids.is_id("prod", identifier) and not ids.is_id("var", identifier)
    assert set(identifier.removeprefix("prod_")) <= set(string.ascii_letters + string.digits)
    assert not ids.is_id("prod", identifier + "\n") and not ids.is_id("prod", identifier[:-1] + "-")


def test_one_process_creates_unique_identifiers_in_order() -> None:
    with ThreadPoolExecutor(4) as pool:
        created = [list(part) for part in pool.map(lambda _: [ids.new_id("evt") for _ in range(5_000)], range(4))]
    assert all(part == sorted(part) for part in created)
    assert len({one for part in created for one in part}) == 20_000


def test_a_forked_process_creates_different_identifiers() -> None:
    read, write = os.pipe()
    child = os.fork()
    if not child:
        ids.reset_after_fork()
        os.write(write, " ".join(ids.new_id("evt") for _ in range(50)).encode())
        os._exit(0)
    os.waitpid(child, 0)
    theirs = os.read(read, 65_536).decode().split()
    assert len({*theirs, *(ids.new_id("evt") for _ in range(50))}) == 100


def test_identifiers_contain_the_time_of_rfc_9562() -> None:
    number = ids.build_uuid7(0x0123456789AB, (1 << 74) - 1)
    assert number >> 80 == 0x0123456789AB
    assert number >> 76 & 0xF == 7
    assert number >> 62 & 0b11 == 0b10


def test_base62_keeps_the_order() -> None:
    numbers = [0, 1, 61, 62, 3843, 3844, 2**64, 2**127, 2**128 - 1]
    assert [ids.encode_base62(number) for number in numbers] == sorted(ids.encode_base62(number) for number in numbers)
    assert len(ids.encode_base62(2**128 - 1)) == ids.LENGTH
