"""Contract tests of `storage` with organisations on two servers."""

from tests.contract.test_storage import *  # noqa: F403  all tests, with this folder's backend
