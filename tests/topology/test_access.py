"""Contract tests of `access` with organisations on two servers."""

from tests.contract.test_access import *  # noqa: F403  all tests, with this folder's backend
