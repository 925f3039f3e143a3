"""Contract tests of `sources` with organisations on two servers."""

from tests.contract.test_sources import *  # noqa: F403  all tests, with this folder's backend
