"""Contract tests of `secrets` with organisations on two servers."""

from tests.contract.test_secrets import *  # noqa: F403  all tests, with this folder's backend
