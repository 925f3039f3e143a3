"""Contract tests of `orgs` with organisations on two servers."""

from tests.contract.test_orgs import *  # noqa: F403  all tests, with this folder's backend
