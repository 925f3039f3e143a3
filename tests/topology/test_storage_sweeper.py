"""Contract tests of `storage_sweeper` with organisations on two servers."""

from tests.contract.test_storage_sweeper import *  # noqa: F403  all tests, with this folder's backend
