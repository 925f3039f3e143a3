"""Contract tests of `mappings` with organisations on two servers."""

from tests.contract.test_mappings import *  # noqa: F403  all tests, with this folder's backend
