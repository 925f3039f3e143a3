"""The contract suite of `idempotency`, organisations on two servers."""

from tests.contract.test_idempotency import *  # noqa: F403  every test of it, with this folder's backend
