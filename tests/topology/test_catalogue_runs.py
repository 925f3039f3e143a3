"""Contract tests of `catalogue_runs` with organisations on two servers."""

from tests.contract.test_catalogue_runs import *  # noqa: F403  all tests, with this folder's backend
