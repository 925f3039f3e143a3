"""Locks that show which process has which secret."""

import pytest

from adapters.postgres.nodes.pool import Pool
from adapters.postgres.secrets import PostgresKeyRingStore
from tests.postgres.databases import create_temporary_database

pytestmark = pytest.mark.asyncio
OLD, NEW = "0123456789abcdef", "fedcba9876543210"


async def test_connections_that_lack_a_secret_are_counted() -> None:
    async with create_temporary_database("key_locks") as address:
        knowing, old, earlier = (
            Pool(address, loaded_key_ids=(NEW, OLD)),
            Pool(address, loaded_key_ids=(OLD,)),
            Pool(address),
        )
        rings = PostgresKeyRingStore(knowing)
        try:
            assert (await rings.count_outdated_connections(NEW), await rings.count_outdated_connections(OLD)) == (0, 0)
            async with old.connect_to_coordinator(), old.connect_to_coordinator():
                assert (await rings.count_outdated_connections(NEW), await rings.count_outdated_connections(OLD)) == (
                    2,
                    0,
                )
            assert await rings.count_outdated_connections(NEW) == 2, "pooled connections count as well"
            await old.close()
            async with earlier.connect_to_coordinator():
                assert (await rings.count_outdated_connections(NEW), await rings.count_outdated_connections(OLD)) == (
                    1,
                    1,
                )
        finally:
            for pool in (knowing, old, earlier):
                await pool.close()


async def test_the_key_ring_is_replaced_only_if_unchanged() -> None:
    async with create_temporary_database("key_rings") as address:
        pool = Pool(address)
        rings = PostgresKeyRingStore(pool)
        try:
            assert await rings.read() is None and await rings.has_api_keys() is False
            assert await rings.write(b"1", b"0") is False and await rings.read() is None
            assert await rings.write(b"1", None) is True and await rings.write(b"2", None) is False
            assert await rings.write(b"3", b"2") is False and await rings.write(b"2", b"1") is True
            stored = await rings.read()
            assert stored is not None and stored.ciphertext == b"2"
        finally:
            await pool.close()
