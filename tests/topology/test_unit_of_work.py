"""Contract tests of `unit_of_work` with organisations on two servers."""

from tests.contract.test_unit_of_work import *  # noqa: F403  all tests, with this folder's backend
