"""Contract tests of `pushes` with organisations on two servers."""

from tests.contract.test_pushes import *  # noqa: F403  all tests, with this folder's backend
