"""Contract tests of `idempotency` with organisations on two servers."""

from tests.contract.test_idempotency import *  # noqa: F403  all tests, with this folder's backend
