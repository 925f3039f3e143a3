"""Contract tests of `match_index` with organisations on two servers."""

from tests.contract.test_match_index import *  # noqa: F403  all tests, with this folder's backend
