"""Contract tests of `catalogue` with organisations on two servers."""

from tests.contract.test_catalogue import *  # noqa: F403  all tests, with this folder's backend
