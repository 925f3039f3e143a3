"""Contract tests of `runs` with organisations on two servers."""

from tests.contract.test_runs import *  # noqa: F403  all tests, with this folder's backend
