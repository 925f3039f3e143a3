"""Contract tests of `jobs` with organisations on two servers."""

from tests.contract.test_jobs import *  # noqa: F403  all tests, with this folder's backend
