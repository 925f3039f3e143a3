"""Contract tests of `tables` with organisations on two servers."""

from tests.contract.test_tables import *  # noqa: F403  all tests, with this folder's backend
