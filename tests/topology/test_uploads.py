"""Contract tests of `uploads` with organisations on two servers."""

from tests.contract.test_uploads import *  # noqa: F403  all tests, with this folder's backend
